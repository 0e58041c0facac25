//! The page, with the policy that lets nothing run but what is in it.

use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue, header};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

/// The page.
pub(super) const PAGE: &str = include_str!("../../../../assets/page.html");

/// The policy of the page and of all answers to it.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = policy(PAGE).expect("the page has one style and one script");
    HeaderValue::from_str(&policy).expect("a policy is plain text")
});

/// Returns the headers of every answer to the page.
pub(super) fn headers() -> [(HeaderName, HeaderValue); 7] {
    let fixed = HeaderValue::from_static;
    [
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::X_FRAME_OPTIONS, fixed("DENY")),
        (header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (header::CACHE_CONTROL, fixed("no-store")),
        (header::REFERRER_POLICY, fixed("no-referrer")),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            fixed("same-origin"),
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            fixed("same-origin"),
        ),
    ]
}

/// Returns the policy for a page with one style and one script.
fn policy(page: &str) -> Option<String> {
    let style = source(page, "style")?;
    let script = source(page, "script")?;
    Some(format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    ))
}

/// Returns the source of the one element of this name, as a policy names it.
fn source(page: &str, name: &str) -> Option<String> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let (_, rest) = page.split_once(&start)?;
    let (text, rest) = rest.split_once(&end)?;
    let is_only = !rest.contains(&format!("<{name}"));
    let hash = BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    is_only.then(|| format!("sha256-{hash}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_one_style_and_the_one_script() {
        // The hash of the empty text, which anyone can compare.
        let empty = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let page = "<style></style><script></script>";
        let policy = policy(page).unwrap();
        assert!(policy.contains(&format!("script-src '{empty}'; style-src '{empty}'")));
        for page in [
            "<style></style>",
            "<style></style><script></script><script></script>",
            "<style></style><script src=\"x\"></script>",
        ] {
            assert_eq!(super::policy(page), None, "{page}");
        }
    }

    #[test]
    fn the_page_itself_has_a_policy_and_loads_nothing() {
        assert_eq!(headers().len(), 7);
        for sign in [
            " src=",
            "http://",
            "https://",
            "@import",
            "url(",
            " style=",
            " onclick=",
        ] {
            assert!(!PAGE.contains(sign), "{sign}");
        }
    }
}
