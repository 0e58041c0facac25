//! The target of the link under the pointer, as the footer shows it.
//!
//! ```text
//!  ask · busy → https://…@files.example.org/a/long/pat…
//!                         └──── host ─────┘
//! ```
//!
//! A link's text may be anything, so that the part that decides where it goes stands out and is the last to give way: the
//! host of a web page, the addresses of a mail, the end of a file's path. If it is too long for the line its end stays,
//! because its owner cannot choose that.

use ratatui::{style::Modifier, text::Span};

use pitstop_core::app::Model;

use super::{text, theme::Theme};

/// The arrow before a target in the footer.
const ARROW: &str = " → ";

/// Returns the target to show, if there is one: not while the footer is typed in or shows which key it waits for.
pub(super) fn hovered_target(model: &Model) -> Option<&str> {
    let view = &model.view;
    let target = view.hovered.as_deref()?;
    let typed = view.copy.search().is_some() || view.prefixed || view.overlay.is_some();
    (!typed).then_some(target)
}

/// The parts of a target, as a browser reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts<'a> {
    scheme: &'a str,
    /// The name and password before the host, which may look like a host.
    account: &'a str,
    host: &'a str,
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn of(target: &'a str) -> Self {
        let (name, _) = target.split_once(':').unwrap_or_default();
        let is = |scheme: &str| name.eq_ignore_ascii_case(scheme);
        let behind = target.get(name.len() + 1..).unwrap_or_default();
        if !is("http") && !is("https") {
            let file = is("file");
            let path = behind.strip_prefix("//").filter(|_| file);
            let path = path.unwrap_or(behind);
            let (scheme, behind) = target.split_at(target.len() - path.len());
            let end = if file { None } else { behind.find('?') };
            let (host, rest) = behind.split_at(end.unwrap_or(behind.len()));
            return Self {
                scheme,
                account: "",
                host,
                rest,
            };
        }
        // Browsers take a backslash for a slash, and any number of them at the start.
        let authority = behind.trim_start_matches(['/', '\\']);
        let (scheme, authority) = target.split_at(target.len() - authority.len());
        let end = authority.find(['/', '\\', '?', '#']);
        let host = &authority[..end.unwrap_or(authority.len())];
        let (account, host) = host.split_at(host.rfind('@').map_or(0, |at| at + 1));
        // A port can be made as long as one likes with zeros.
        let port = host.rfind(':').filter(|at| !host[*at..].contains(']'));
        let host = &host[..port.unwrap_or(host.len())];
        let rest = &authority[account.len() + host.len()..];
        Self {
            scheme,
            account,
            host,
            rest,
        }
    }

    fn short_account(self) -> &'static str {
        if self.account.is_empty() { "" } else { "…@" }
    }
}

/// Returns the fewest cells that show a target without a cut in its host.
pub(super) fn least_width(target: &str) -> usize {
    let target = text::safe(target);
    let parts = Parts::of(&target);
    let reported = [ARROW, parts.scheme, parts.short_account(), parts.host];
    let whole = text::width(ARROW) + text::width(&target);
    whole.min(reported.into_iter().map(text::width).sum::<usize>() + 1)
}

/// Returns the target in so many cells.
pub(super) fn target_spans(target: &str, cells: usize, theme: &Theme) -> Vec<Span<'static>> {
    let target = text::safe(target);
    let parts = Parts::of(&target);
    let room = cells.saturating_sub(text::width(ARROW));
    let (account, host, rest) = if text::width(&target) <= room {
        (parts.account, parts.host.to_owned(), parts.rest.into())
    } else {
        let account = parts.short_account();
        let room = room.saturating_sub(text::width(parts.scheme) + text::width(account));
        let host = if text::width(parts.host) <= room {
            parts.host.to_owned()
        } else {
            format!("…{}", text::tail(parts.host, room.saturating_sub(1)))
        };
        let rest = text::fit(parts.rest, room.saturating_sub(text::width(&host)));
        (account, host, rest)
    };
    vec![
        Span::styled(ARROW, theme.accent),
        Span::styled(format!("{}{account}", parts.scheme), theme.dim),
        Span::styled(host, theme.text.add_modifier(Modifier::BOLD)),
        Span::styled(rest.into_owned(), theme.dim),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(target: &str, cells: usize) -> String {
        let spans = target_spans(target, cells, &Theme::default());
        let reported: String = spans.iter().map(|span| &*span.content).collect();
        assert!(text::width(&reported) <= cells, "{reported}");
        reported
    }

    /// Returns the part that stands out, where there is room for everything.
    fn host(target: &str) -> String {
        let spans = target_spans(target, 1000, &Theme::default());
        spans[2].content.to_string()
    }

    #[test]
    fn what_stands_out_is_where_a_browser_would_go() {
        for (target, wanted) in [
            ("https://example.org", "example.org"),
            ("HTTP://example.org:8080/a:b@c", "example.org"),
            ("https://bank.example@evil.example/", "evil.example"),
            ("https://a:b@c@evil.example?x@y", "evil.example"),
            (r"https://evil.example\@bank.example/", "evil.example"),
            (r"https://\evil.example/", "evil.example"),
            ("https://[::1]:80/", "[::1]"),
            ("https://[::1]", "[::1]"),
            ("mailto:a@b.org?subject=c@d.org", "a@b.org"),
            ("file:///etc/hosts", "/etc/hosts"),
        ] {
            assert_eq!(host(target), wanted, "{target}");
        }
    }

    #[test]
    fn the_host_is_the_last_to_give_way() {
        let path = "https://example.org/a/long/path";
        assert_eq!(reported(path, 34), format!(" → {path}"));
        assert_eq!(reported(path, 33), " → https://example.org/a/long/pa…");
        assert_eq!(reported(path, 22), " → https://example.org");
        assert_eq!(reported(path, 21), " → https://…ample.org");
        let account = "https://www.bank.example:pay@evil.example/login";
        assert_eq!(reported(account, 30), " → https://…@evil.example/log…");
        let zeros = format!("https://evil.example:{}443/", "0".repeat(500));
        assert_eq!(reported(&zeros, 30), " → https://evil.example:00000…");
        let long = format!("https://bank.example.{}.evil.example/x", "a".repeat(300));
        assert_eq!(
            reported(&long, 40),
            format!(" → https://…{}.evil.example", "a".repeat(15))
        );
        let file = "file:///home/somebody/Downloads/report.desktop";
        assert_eq!(reported(file, 30), " → file://…oads/report.desktop");
        for cells in 20..60 {
            for target in [path, account, &zeros, &long, file, "", ":", "x"] {
                // It fits.
                reported(target, cells);
            }
        }
    }

    #[test]
    fn the_least_room_cuts_no_host() {
        for target in [
            "https://example.org",
            "https://example.org/a/b/c",
            "https://me:secret@example.org/a/b/c",
            "mailto:a@b.org?subject=x",
            "file:///etc/hosts",
        ] {
            let host = host(target);
            assert!(
                reported(target, least_width(target)).contains(&host),
                "{target}"
            );
        }
    }

    #[test]
    fn nothing_of_a_target_steers_the_terminal() {
        let hostile = "https://a\u{1b}]0;x\u{7}\u{202e}.example/\u{9b}";
        let reported = reported(hostile, 200);
        assert!(
            !reported.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}']),
            "{reported:?}"
        );
    }
}
