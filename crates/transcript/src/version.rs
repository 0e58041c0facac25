//! The versions of the client, which its records name.

/// Reports whether a version is the wanted one or a later one; one that is not known counts as today's.
pub fn is_at_least(version: Option<&str>, wanted: [u32; 3]) -> bool {
    let Some(version) = version else {
        return true;
    };
    let mut numbers = version.split(['.', '-', ' ']).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    [next(), next(), next()] >= wanted
}
