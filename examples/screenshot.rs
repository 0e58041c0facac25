//! Draws the pictures of the documents from the program's own views.
//!
//! ```text
//! cargo run --example screenshot                    writes docs/pictures/*.svg
//! cargo run --example screenshot -- --check         exits with 1 if one is no longer what the program draws
//! cargo run --example screenshot -- review > a.svg  prints one
//! cargo run --example screenshot -- --all DIR       writes every view at every usual size, dark and light, into DIR
//! ```

#![allow(
    clippy::too_many_lines,
    reason = "a picture is described from beginning to end"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "any instant will do as the first one"
)]

#[path = "../tests/it/ui/pictures.rs"]
mod pictures;
#[path = "../tests/it/ui/scene.rs"]
#[allow(dead_code)] // The tests use more of it.
mod scene;
#[path = "../tests/it/ui/svg.rs"]
mod svg;
#[path = "../tests/it/ui/views.rs"]
mod views;

use std::{env, fs, io, path::Path, process::ExitCode};

use pictures::{PICTURES, Picture};

fn main() -> io::Result<ExitCode> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => write(),
        ["--check"] => Ok(check()),
        ["--all", directory] => write_all(Path::new(directory)),
        [name] => Ok(print(name)),
        _ => {
            eprintln!("expected no word, --check, --all DIR or the name of a picture");
            Ok(ExitCode::from(2))
        }
    }
}

fn write() -> io::Result<ExitCode> {
    for picture in &PICTURES {
        let path = picture.path();
        fs::create_dir_all(path.parent().expect("it is in a directory"))?;
        fs::write(path, picture.draw())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_all(directory: &Path) -> io::Result<ExitCode> {
    fs::create_dir_all(directory)?;
    for view in &views::VIEWS {
        for (columns, rows) in views::SIZES {
            for (is_dark, colours) in [(true, "dark"), (false, "light")] {
                let name = format!("{}-{columns}x{rows}-{colours}.svg", view.0);
                let picture = views::picture(view, (columns, rows), is_dark);
                fs::write(directory.join(name), picture)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check() -> ExitCode {
    let is_current = |picture: &&Picture| {
        fs::read_to_string(picture.path()).is_ok_and(|kept| kept == picture.draw())
    };
    let stale: Vec<&str> = PICTURES
        .iter()
        .filter(|picture| !is_current(picture))
        .map(|picture| picture.name)
        .collect();
    if stale.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "not what the program draws: {}; run `cargo run --example screenshot`",
        stale.join(", ")
    );
    ExitCode::FAILURE
}

fn print(name: &str) -> ExitCode {
    let Some(picture) = PICTURES.iter().find(|picture| picture.name == name) else {
        let names: Vec<&str> = PICTURES.iter().map(|picture| picture.name).collect();
        eprintln!("no picture {name:?}; there are {}", names.join(", "));
        return ExitCode::from(2);
    };
    print!("{}", picture.draw());
    ExitCode::SUCCESS
}
