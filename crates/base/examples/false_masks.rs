//! How often the secret masking hits ordinary source: `cargo run --release --example false_masks -- DIR…`.
//!
//! Prints every stretch that would be masked, then how many there are in how many bytes, and how fast the masking was.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::{env, fs, path::Path, time::Instant};

use pitstop_base::redact::secrets;

fn walk(path: &Path, sink: &mut impl FnMut(&Path, &str)) {
    if let Ok(entries) = fs::read_dir(path) {
        for entry in entries.flatten() {
            walk(&entry.path(), sink);
        }
    } else if let Ok(text) = fs::read_to_string(path) {
        sink(path, &text);
    }
}

fn main() {
    let (mut bytes, mut masks, mut nanos) = (0_usize, 0_usize, 0_u128);
    for directory in env::args().skip(1) {
        walk(Path::new(&directory), &mut |path, text| {
            let began = Instant::now();
            let found = secrets(text);
            nanos += began.elapsed().as_nanos();
            bytes += text.len();
            masks += found.len();
            for one in found {
                let from = text.floor_char_boundary(one.range.start.saturating_sub(30));
                let excerpt: String = text[from..one.range.end].chars().take(110).collect();
                println!("{}: {}: {excerpt:?}", path.display(), one.kind);
            }
        });
    }
    let megabytes = bytes as f64 / 1e6;
    let seconds = nanos as f64 / 1e9;
    println!(
        "{masks} masks in {megabytes:.1} MB, {:.0} MB/s",
        megabytes / seconds.max(1e-9)
    );
}
