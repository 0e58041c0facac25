//! The handoff's template: the user's own `handoff.md` in the configuration directory, else the built-in one.

use std::{fs, io};

use pitstop_base::clean;
use pitstop_core::config::load::paths::Paths;
use pitstop_handoff::{Generator, generate::DEFAULT_TEMPLATE};

/// Returns the generator of the template in force; for one that cannot be used, the error and its place.
pub fn generator(paths: &Paths) -> Result<Generator, String> {
    let own = paths.config_dir().join("handoff.md");
    let shown = own.to_string_lossy();
    let shown = clean::one_line(&shown);
    let text = match fs::read_to_string(&own) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => DEFAULT_TEMPLATE.to_owned(),
        Err(error) => return Err(format!("cannot read {shown}: {error}")),
    };
    Generator::new(&text).map_err(|error| format!("{shown}: {error}"))
}
