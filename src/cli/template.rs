//! The handoff's template: the user's own `handoff.md` in the configuration directory, else the built-in one.

use pitstop_base::clean;
use pitstop_core::config::load::{self, paths::Paths};
use pitstop_handoff::{Generator, generate::DEFAULT_TEMPLATE};

/// Returns the generator of the template in force; for one that cannot be used, the error and its place.
pub fn generator(paths: &Paths) -> Result<Generator, String> {
    let own = paths.config_dir().join("handoff.md");
    let shown = own.to_string_lossy();
    let shown = clean::one_line(&shown);
    let text = load::read_beside(&own).map_err(|fault| fault.line())?;
    Generator::new(text.as_deref().unwrap_or(DEFAULT_TEMPLATE))
        .map_err(|error| format!("{shown}: {error}"))
}
