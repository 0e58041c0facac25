#!/bin/sh
# Installs pitstop for this user, without root: the archive of a release, once its checksum is right.
#
#   sh install.sh                 into ~/.local/bin
#   sh install.sh --uninstall     removes what it has installed
#
#   PITSTOP_INSTALL_DIR   the directory of the binary, in place of ~/.local/bin
#   PITSTOP_VERSION       another version than that of this script
#   PITSTOP_BASE_URL      another address of the releases, such as a mirror
#
# A release's own copy has its version and address; packaging/fill writes them into this template.
set -eu

version=${PITSTOP_VERSION:-@VERSION@}
base=${PITSTOP_BASE_URL:-https://github.com/@REPOSITORY@/releases/download}
bin=${PITSTOP_INSTALL_DIR:-$HOME/.local/bin}
data=${XDG_DATA_HOME:-$HOME/.local/share}
man=$data/man/man1
bash=$data/bash-completion/completions
zsh=$data/zsh/site-functions
fish=$data/fish/vendor_completions.d

fail() {
  echo "error: $1" >&2
  exit 1
}

uninstall() {
  [ -e "$bin/pitstop" ] || fail "$bin/pitstop is not there: set PITSTOP_INSTALL_DIR to the directory it was installed in"
  rm -f "$bin/pitstop" "$man/pitstop.1" "$man"/pitstop-*.1 "$bash/pitstop" "$zsh/_pitstop" "$fish/pitstop.fish"
  # Only those that are empty: they may hold what other programs have put there.
  for directory in "$man" "$data/man" "$bash" "${bash%/*}" "$zsh" "${zsh%/*}" "$fish" "${fish%/*}"; do
    rmdir "$directory" 2>/dev/null || true
  done
  echo "pitstop is removed; your configuration and history stay in ${XDG_CONFIG_HOME:-$HOME/.config}/pitstop and ${XDG_STATE_HOME:-$HOME/.local/state}/pitstop"
}

target() {
  case "$(uname -s) $(uname -m)" in
    "Linux x86_64" | "Linux amd64") echo x86_64-unknown-linux-musl ;;
    "Linux aarch64" | "Linux arm64") echo aarch64-unknown-linux-musl ;;
    "Darwin arm64") echo aarch64-apple-darwin ;;
    "Darwin x86_64") echo x86_64-apple-darwin ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m): build it with cargo (README.md)" ;;
  esac
}

fetch() { # address, file
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --output-document="$2" "$1"
  else
    fail "neither curl nor wget is there: install one of them"
  fi || fail "cannot download $1"
}

sum_of() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  else
    shasum -a 256 "$1"
  fi | cut -d ' ' -f 1
}

install_release() {
  target=$(target)
  name=pitstop-$version-$target
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' HUP INT TERM
  fetch "$base/v$version/SHA256SUMS" "$scratch/SHA256SUMS"
  fetch "$base/v$version/$name.tar.gz" "$scratch/$name.tar.gz"
  expected=$(sed -n "s/  $name\.tar\.gz\$//p" "$scratch/SHA256SUMS")
  found=$(sum_of "$scratch/$name.tar.gz")
  [ -n "$expected" ] || fail "SHA256SUMS of $version does not name $name.tar.gz"
  [ "$found" = "$expected" ] ||
    fail "the checksum of $name.tar.gz is wrong: expected $expected, found $found; nothing was installed"
  tar -C "$scratch" -xzf "$scratch/$name.tar.gz"
  from=$scratch/$name
  "$from/pitstop" -V >/dev/null || fail "the binary does not run here; nothing was installed"
  mkdir -p "$bin" "$man" "$bash" "$zsh" "$fish"
  # Renamed into its place: a pitstop that runs keeps its own file.
  cp "$from/pitstop" "$bin/.pitstop.new"
  mv "$bin/.pitstop.new" "$bin/pitstop"
  cp "$from"/man/*.1 "$man/"
  cp "$from/completions/pitstop.bash" "$bash/pitstop"
  cp "$from/completions/_pitstop" "$zsh/_pitstop"
  cp "$from/completions/pitstop.fish" "$fish/pitstop.fish"
  echo "$("$bin/pitstop" -V) is installed: $bin/pitstop"
  case ":$PATH:" in
    *":$bin:"*) echo "next: pitstop doctor" ;;
    *) echo "next: add $bin to your PATH, then: pitstop doctor" ;;
  esac
}

case "${1-}" in
  "") install_release ;;
  --uninstall) uninstall ;;
  *) fail "expected no argument, or --uninstall; found $1" ;;
esac
