//! The task of a run as a file: read at the start and again before each prompt, so that a person steers by editing it.

use std::{fs::File, path::Path};

use pitstop_base::private_file::read_at_most;

/// The longest task, in bytes: it goes into a start prompt, and one argument may have 128 KiB on Linux.
pub const LIMIT: u64 = 100_000;

/// Reads a task; the error describes in one line what is wrong with it.
pub fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    let bytes = File::open(path)
        .and_then(|file| read_at_most(LIMIT + 1, file))
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    if bytes.len() as u64 > LIMIT {
        return Err(format!(
            "{name} is too large for a task: expected at most {LIMIT} bytes"
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| format!("{name} is no text: {error}"))?;
    if text.trim().is_empty() {
        return Err(format!("{name} is empty: expected a task"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_text_of_a_bounded_size() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("task.md");
        std::fs::write(&file, "build it\n").unwrap();
        assert_eq!(read(&file).unwrap(), "build it\n");
        for (bytes, what) in [
            (&b" \n"[..], "is empty"),
            (&[0xff, b'a'][..], "is no text"),
            (&vec![b'a'; 100_001][..], "at most 100000 bytes"),
        ] {
            std::fs::write(&file, bytes).unwrap();
            assert!(read(&file).unwrap_err().contains(what));
        }
        assert!(
            read(&dir.path().join("none"))
                .unwrap_err()
                .contains("cannot read")
        );
        assert!(read(dir.path()).is_err());
    }
}
