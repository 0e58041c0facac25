#!/bin/sh
# pitstop git-hook: tells a running pitstop of each commit, in the background.
# It prints nothing, and neither fails nor holds up a commit. `pitstop git-hook remove` takes it away.
pitstop=@PITSTOP@
git_dir="${GIT_DIR:-.git}"

# The commits of a rebase are no moments to stop.
if ! [ -d "$git_dir/rebase-merge" ] && ! [ -d "$git_dir/rebase-apply" ] && [ -x "$pitstop" ]; then
	# Up to here no process was started, nor is one where no supervisor runs.
	for observe in "${PITSTOP_OBSERVE:-/nowhere}" \
		"${XDG_STATE_HOME:-${HOME:-/nowhere}/.local/state}"/pitstop/run/*.observe /tmp/pitstop-@UID@/*.observe; do
		if [ -f "$observe" ]; then
			# Read now: the next commit may be made before anybody else gets to it. Git has just written the branch's
			# file; where it keeps branches in another way it is asked.
			sha=
			read -r head 2>/dev/null <"$git_dir/HEAD"
			case $head in
			"ref: "*) [ -f "$git_dir/${head#ref: }" ] && read -r sha 2>/dev/null <"$git_dir/${head#ref: }" ;;
			*) sha=$head ;;
			esac
			[ ${#sha} -ge 40 ] || sha=$(git rev-parse --verify HEAD 2>/dev/null)
			"$pitstop" git-hook post-commit "$sha" </dev/null >/dev/null 2>&1 &
			break
		fi
	done
fi

# The hook that was here before: its exit code is this one's.
earlier="${0%/*}/@EARLIER@"
if [ -f "$earlier" ] && [ -x "$earlier" ]; then
	# husky (its directory has a file `h`) finds what to run by the name of the hook.
	if [ -f "${0%/*}/h" ]; then
		. "$earlier"
		exit
	fi
	exec "$earlier" "$@"
fi
exit 0
