//! Bytes to screen to frame, alone and between keys, resizes and all else that a session is made of.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};

use super::{
    Input,
    stage::{NewModel, Stage},
};

/// The most steps of one input: each is a frame that is painted several times.
const STEPS: usize = 8;

/// What else happens is reported behind this byte, which no text has.
pub const MARK: u8 = 0xff;

/// Feeds bytes in pieces and draws each time.
pub fn bytes(data: &[u8], model: NewModel) {
    let mut input = Input(data);
    let host = size(&mut input);
    let (look, seed) = (input.byte(), input.byte());
    let mut stage = Stage::new(model(host), look);
    let pieces = input.pieces(seed);
    let every = pieces.len().div_ceil(STEPS);
    for (number, piece) in (1..).zip(pieces) {
        stage.feed(piece);
        if number % every == 0 {
            stage.draw(false);
        }
    }
    stage.wait(Duration::from_secs(1));
    stage.draw(false);
    stage.in_one_piece_it_is_the_same(input.0);
}

/// Bytes with resizes, keys, clicks, scrolling, waiting and dying between them.
pub fn session(data: &[u8], model: NewModel) {
    let mut input = Input(data);
    let host = size(&mut input);
    let look = input.byte();
    let mut stage = Stage::new(model(host), look);
    for _ in 0..2 * STEPS {
        if input.0.is_empty() {
            break;
        }
        stage.feed(input.up_to(MARK));
        match input.byte() % 9 {
            0 => stage.draw(false),
            1 => stage.resize(size(&mut input)),
            2 => stage.key(key(input.byte())),
            3 => stage.wait(Duration::from_millis(u64::from(input.byte()))),
            4 => {
                let (kind, column, row) = (input.byte(), input.byte(), input.byte());
                stage.mouse(mouse(kind), column.into(), row.into(), kind & 8 != 0);
            }
            5 => stage.child_dies(),
            6 => {
                // Several keys in one go, as they are typed.
                for _ in 0..input.byte() % 8 {
                    stage.key(key(input.byte()));
                }
            }
            7 => stage.paste(input.up_to(MARK)),
            _ => stage.scroll(i32::from(input.byte().cast_signed())),
        }
        stage.draw(false);
    }
    stage.wait(Duration::from_secs(1));
    stage.draw(true);
}

/// Small sizes more often than large ones, and the layouts' borders among them.
fn size(input: &mut Input) -> (u16, u16) {
    let columns = match u16::from(input.byte()) {
        tiny @ 0..40 => tiny,
        small @ 40..220 => 40 + small % 20,
        large @ 220..250 => 80 + (large - 220) * 3,
        large => [99, 100, 117, 118, 131, 132][usize::from(large - 250)],
    };
    let rows = match u16::from(input.byte()) {
        tiny @ 0..10 => tiny,
        small @ 10..230 => 10 + small % 4,
        large => large - 205,
    };
    (columns, rows)
}

fn key(byte: u8) -> KeyEvent {
    const PLAIN: &[u8] = b"hjklwbeWBE0^$gGHMLvVoynN{}/?qiarx .*";
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
    match byte {
        0..12 => plain(KeyCode::F(byte + 1)),
        12..24 => {
            let named = [
                KeyCode::Esc,
                KeyCode::Enter,
                KeyCode::Up,
                KeyCode::Down,
                KeyCode::Left,
                KeyCode::Right,
                KeyCode::PageUp,
                KeyCode::PageDown,
                KeyCode::Home,
                KeyCode::End,
                KeyCode::Backspace,
                KeyCode::Tab,
            ];
            plain(named[usize::from(byte - 12)])
        }
        24..32 => control(char::from(b"vudfbqcz"[usize::from(byte - 24)])),
        32..90 => {
            // Copy mode is where most of the code is.
            plain(KeyCode::F(9))
        }
        _ => plain(KeyCode::Char(char::from(
            PLAIN[usize::from(byte) % PLAIN.len()],
        ))),
    }
}

fn mouse(byte: u8) -> MouseEventKind {
    match byte % 8 {
        0 | 1 => MouseEventKind::Down(MouseButton::Left),
        2 => MouseEventKind::Up(MouseButton::Left),
        3 | 4 => MouseEventKind::Drag(MouseButton::Left),
        5 => MouseEventKind::ScrollUp,
        6 => MouseEventKind::ScrollDown,
        _ => MouseEventKind::Moved,
    }
}
