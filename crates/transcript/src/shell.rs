//! Shell lines, cut into words and the signs between them as a shell does it. Nothing is expanded.

use std::ops::Range;

/// The kind of a part of a shell line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word of a command, without its quotes.
    Word,
    /// The target of a redirection, likewise.
    Target,
    /// The beginning of a document that is written in the line: `<<`.
    Document,
    /// The end of a command: `;`, `&`, `|`, `&&`, `||`, a line feed, or a bracket of a subshell.
    Sign,
}

/// A part of a shell line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of the part.
    pub kind: Kind,
    /// Its text.
    pub text: String,
    /// Its place in the line.
    pub place: Range<usize>,
}

/// Returns the parts of a line, without comments; the last one is a sign.
pub fn tokens(line: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut put = |kind, text: &str, place| {
        let text = text.to_owned();
        found.push(Token { kind, text, place });
    };
    // A line feed at the end ends the last word and the last command.
    let mut signs = line.char_indices().chain([(line.len(), '\n')]).peekable();
    let (mut word, mut quote, mut kind) = (None::<(String, usize)>, None, Kind::Word);
    while let Some((at, sign)) = signs.next() {
        let ends_word = (quote.is_none() || at == line.len()) && " \t\r\n;&|()<>".contains(sign);
        if let Some((text, start)) = word.take_if(|_| ends_word) {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            if !(is_number && matches!(sign, '<' | '>')) {
                put(kind, &text, start..at);
            }
            kind = Kind::Word;
        }
        let rest = &line[at..];
        match (quote, sign) {
            (None, '#') if word.is_none() => {
                while signs.next_if(|(_, sign)| *sign != '\n').is_some() {}
            }
            (None, '<' | '>' | '&') if sign != '&' || rest.starts_with("&>") => {
                if rest.starts_with("<<") {
                    put(Kind::Document, "<<", at..at + 2);
                }
                while signs.next_if(|(_, sign)| "<>&|".contains(*sign)).is_some() {}
                kind = Kind::Target;
            }
            _ if ends_word && sign.is_whitespace() && sign != '\n' => {}
            _ if ends_word => {
                let is_double = rest.starts_with("&&") || rest.starts_with("||");
                signs.next_if(|_| is_double);
                let end = line.len().min(at + 1 + usize::from(is_double));
                put(Kind::Sign, &line[at..end], at..end);
            }
            _ => {
                let (text, _) = word.get_or_insert((String::new(), at));
                match (quote, sign) {
                    (Some(mark), _) if mark == sign => quote = None,
                    (None, '\'' | '"' | '`') => quote = Some(sign),
                    (None | Some('"'), '\\') => {
                        let next = signs.next().filter(|(_, next)| *next != '\n');
                        text.extend(next.map(|(_, next)| next));
                    }
                    _ => text.push(sign),
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> Vec<(Kind, String)> {
        let parts = tokens(line).into_iter();
        parts.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn words_signs_and_targets_are_told_apart() {
        use Kind::{Document, Sign, Target, Word};
        let part = |kind, text: &str| (kind, text.to_owned());
        for (line, first) in [
            (
                "a 'b c' \"d\\\"e\" f\\ g # h",
                &[
                    part(Word, "a"),
                    part(Word, "b c"),
                    part(Word, "d\"e"),
                    part(Word, "f g"),
                ][..],
            ),
            (
                "x 2>&1 >out.txt|y",
                &[
                    part(Word, "x"),
                    part(Target, "1"),
                    part(Target, "out.txt"),
                    part(Sign, "|"),
                    part(Word, "y"),
                ],
            ),
            (
                "a&&b||c &>d",
                &[
                    part(Word, "a"),
                    part(Sign, "&&"),
                    part(Word, "b"),
                    part(Sign, "||"),
                    part(Word, "c"),
                    part(Target, "d"),
                ],
            ),
            (
                "(cd x; y)",
                &[
                    part(Sign, "("),
                    part(Word, "cd"),
                    part(Word, "x"),
                    part(Sign, ";"),
                    part(Word, "y"),
                    part(Sign, ")"),
                ],
            ),
            (
                "cat <<'E'\nb",
                &[
                    part(Word, "cat"),
                    part(Document, "<<"),
                    part(Target, "E"),
                    part(Sign, "\n"),
                    part(Word, "b"),
                ],
            ),
            ("open 'it is", &[part(Word, "open"), part(Word, "it is")]),
        ] {
            let mut first = first.to_vec();
            first.push(part(Sign, ""));
            assert_eq!(parts(line), first, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read_and_places_are_of_the_line(line in "([a-z '\"`\\\\;&|<>()#\n$=]|é|漢|2>&1|<<E){0,40}") {
            for token in tokens(&line) {
                proptest::prop_assert!(line.get(token.place).is_some());
            }
        }
    }
}
