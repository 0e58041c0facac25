//! Reads the output of a terminal program and prints what its screen shows in the end, without a terminal.
//!
//! `printf 'one\rtwo \e[7mthree\e[0m' | cargo run --example render [COLUMNS ROWS]`

use std::io::{self, Read as _};

use pitstop_terminal::{PaneSize, screen::Screen};

fn main() -> io::Result<()> {
    let mut sizes = std::env::args().skip(1).map_while(|text| text.parse().ok());
    let size = PaneSize::new(sizes.next().unwrap_or(80), sizes.next().unwrap_or(24));
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let mut screen = Screen::new(size, 0);
    screen.feed_at_once(&bytes);
    println!("{}", screen.text().trim_end());
    let cursor = screen.cursor();
    println!("\ncursor: {cursor:?}, title: {:?}", screen.title());
    Ok(())
}
