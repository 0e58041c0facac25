//! stub
/// stub
#[derive(Debug)]
pub struct Theme;
impl Theme {
    /// stub
    pub fn from_env(_: crate::config::ThemeName, _: impl Fn(&str) -> Option<String>) -> Self { Self }
    /// stub
    pub fn set_dark(&mut self, _: bool) {}
}
