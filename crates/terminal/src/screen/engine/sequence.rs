//! The application of the usual control sequences without the parser.
//!
//! Besides text, a full-screen program prints mostly colours, moves and erasures to the end of a line. The parser
//! takes each byte of them through its states and the parameters through two lists; here a whole sequence is read at once,
//! with the same calls as result. The parser handles the unusual cases: a sequence that is cut, sub-parameters,
//! private marks, controls in between.

use vte::ansi::{Attr, Color, Handler, LineClearMode, NamedColor, Rgb};

use crate::side_channel::says_overline;

/// The most parameters of a usual sequence: two colours of five, and the attributes that are set with them.
const PARAMETERS: usize = 16;

/// The colours of SGR 30 to 37, in their order.
const NAMED: [NamedColor; 8] = [
    NamedColor::Black,
    NamedColor::Red,
    NamedColor::Green,
    NamedColor::Yellow,
    NamedColor::Blue,
    NamedColor::Magenta,
    NamedColor::Cyan,
    NamedColor::White,
];

/// Applies the control sequence at the start of these bytes and returns its length; 0 if it is for the parser, which must be
/// between sequences.
pub(in crate::screen) fn apply(handler: &mut impl Handler, bytes: &[u8]) -> usize {
    let Some(body) = bytes.strip_prefix(b"\x1b[") else {
        return 0;
    };
    let mut parameters = [0_u16; PARAMETERS];
    let mut last = 0;
    for (at, byte) in body.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                let parameter = &mut parameters[last];
                *parameter = parameter
                    .saturating_mul(10)
                    .saturating_add(u16::from(byte - b'0'));
            }
            b';' if last + 1 < PARAMETERS => last += 1,
            b'm' if says_overline(&body[..at]) => return 0,
            b'm' => {
                attributes(handler, &parameters[..=last]);
                return at + 3;
            }
            _ => {
                let known = place(handler, *byte, parameters[0], parameters[1]);
                return if known { at + 3 } else { 0 };
            }
        }
    }
    0
}

/// Applies a move or an erasure. Returns false if `end` does not end a sequence of that kind.
fn place(handler: &mut impl Handler, end: u8, first: u16, second: u16) -> bool {
    let count = usize::from(first.max(1));
    let line = i32::from(first.max(1)) - 1;
    match end {
        b'A' => handler.move_up(count),
        b'B' => handler.move_down(count),
        b'C' => handler.move_forward(count),
        b'D' => handler.move_backward(count),
        b'G' => handler.goto_col(count - 1),
        b'H' => handler.goto(line, usize::from(second.max(1)) - 1),
        b'K' => match first {
            0 => handler.clear_line(LineClearMode::Right),
            1 => handler.clear_line(LineClearMode::Left),
            2 => handler.clear_line(LineClearMode::All),
            _ => {}
        },
        b'd' => handler.goto_line(line),
        _ => return false,
    }
    true
}

/// Applies the parameters of SGR.
fn attributes(handler: &mut impl Handler, parameters: &[u16]) {
    let mut rest = parameters.iter().copied();
    while let Some(parameter) = rest.next() {
        let named = |first: u16| Color::Named(NAMED[usize::from(parameter - first)]);
        let bright = |first: u16| Color::Named(NAMED[usize::from(parameter - first)].to_bright());
        let attribute = match parameter {
            0 => Some(Attr::Reset),
            1 => Some(Attr::Bold),
            2 => Some(Attr::Dim),
            3 => Some(Attr::Italic),
            4 => Some(Attr::Underline),
            5 => Some(Attr::BlinkSlow),
            6 => Some(Attr::BlinkFast),
            7 => Some(Attr::Reverse),
            8 => Some(Attr::Hidden),
            9 => Some(Attr::Strike),
            21 => Some(Attr::CancelBold),
            22 => Some(Attr::CancelBoldDim),
            23 => Some(Attr::CancelItalic),
            24 => Some(Attr::CancelUnderline),
            25 => Some(Attr::CancelBlink),
            27 => Some(Attr::CancelReverse),
            28 => Some(Attr::CancelHidden),
            29 => Some(Attr::CancelStrike),
            30..=37 => Some(Attr::Foreground(named(30))),
            38 => colour(&mut rest).map(Attr::Foreground),
            39 => Some(Attr::Foreground(Color::Named(NamedColor::Foreground))),
            40..=47 => Some(Attr::Background(named(40))),
            48 => colour(&mut rest).map(Attr::Background),
            49 => Some(Attr::Background(Color::Named(NamedColor::Background))),
            58 => colour(&mut rest).map(|colour| Attr::UnderlineColor(Some(colour))),
            59 => Some(Attr::UnderlineColor(None)),
            90..=97 => Some(Attr::Foreground(bright(90))),
            100..=107 => Some(Attr::Background(bright(100))),
            _ => None,
        };
        if let Some(attribute) = attribute {
            handler.terminal_attribute(attribute);
        }
    }
}

/// Reads the colour after 38, 48 or 58. An invalid one still consumes the parameters that were read.
fn colour(rest: &mut impl Iterator<Item = u16>) -> Option<Color> {
    let mut part = || u8::try_from(rest.next()?).ok();
    match part()? {
        2 => Some(Color::Spec(Rgb {
            r: part()?,
            g: part()?,
            b: part()?,
        })),
        5 => Some(Color::Indexed(part()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vte::ansi::Processor;

    use super::*;

    /// The handler's calls, as text.
    #[derive(Default)]
    struct Calls(Vec<String>);

    macro_rules! noted {
        ($($name:ident($($argument:ident: $type:ty),*);)*) => {
            impl Handler for Calls {
                $(fn $name(&mut self, $($argument: $type),*) {
                    self.0.push(format!("{} {:?}", stringify!($name), ($($argument,)*)));
                })*
            }
        };
    }

    noted! {
        input(c: char);
        goto(line: i32, column: usize);
        goto_line(line: i32);
        goto_col(column: usize);
        move_up(count: usize);
        move_down(count: usize);
        move_forward(count: usize);
        move_backward(count: usize);
        clear_line(mode: LineClearMode);
        terminal_attribute(attribute: Attr);
    }

    /// Returns the calls that the parser makes for the bytes.
    fn parsed(bytes: &[u8]) -> Vec<String> {
        let mut calls = Calls::default();
        let mut parser: Processor = Processor::new();
        parser.advance(&mut calls, bytes);
        // A letter after it is a plain letter: the sequence has ended.
        parser.advance(&mut calls, b"x");
        assert_eq!(calls.0.pop().as_deref(), Some("input ('x',)"));
        calls.0
    }

    #[track_caller]
    fn check(bytes: &[u8]) {
        let mut calls = Calls::default();
        let length = apply(&mut calls, bytes);
        if length > 0 {
            assert_eq!(length, bytes.len());
            assert_eq!(calls.0, parsed(bytes), "{}", bytes.escape_ascii());
        } else {
            assert!(calls.0.is_empty(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn every_number_is_read_as_the_parser_reads_it() {
        for end in b'@'..=b'~' {
            for number in (0..=300).chain([32_767, 32_768, 65_535, 65_536, 99_999_999]) {
                check(format!("\x1b[{number}{}", char::from(end)).as_bytes());
                check(format!("\x1b[{number};{number}{}", char::from(end)).as_bytes());
            }
            check(&[b'\x1b', b'[', end]);
            check(&[b'\x1b', b'[', b';', end]);
        }
    }

    #[test]
    fn the_usual_ones_are_taken_and_the_others_left() {
        let mut calls = Calls::default();
        for taken in [
            "\x1b[m",
            "\x1b[1;38;2;1;2;3;48;5;7m",
            "\x1b[3;4H",
            "\x1b[K",
            "\x1b[12C",
        ] {
            assert_eq!(
                apply(&mut calls, taken.as_bytes()),
                taken.len(),
                "{taken:?}"
            );
        }
        let many = format!("\x1b[{}m", ";".repeat(PARAMETERS));
        for left in [
            "",
            "\x1b",
            "\x1b[",
            "\x1b[1;3",
            "\x1b[4:3m",
            "\x1b[?25h",
            "\x1b[1 q",
            "\x1b[\r1m",
            "\x1b[2b",
            &many,
        ] {
            assert_eq!(apply(&mut calls, left.as_bytes()), 0, "{left:?}");
        }
    }

    proptest! {
        #[test]
        fn any_sequence_is_read_as_the_parser_reads_it(
            numbers in prop::collection::vec(
                prop_oneof![
                    Just(String::new()),
                    prop::sample::select(vec!["2", "5", "38", "48", "58", "255", "256"]).prop_map(str::to_owned),
                    (0_u32..120).prop_map(|number| number.to_string()),
                    any::<u32>().prop_map(|number| number.to_string()),
                ],
                0..20,
            ),
            end in "[@-~]",
        ) {
            check(format!("\x1b[{}{end}", numbers.join(";")).as_bytes());
        }
    }
}
