//! The keys of a Latin keyboard with which letters of other scripts are typed.
//!
//! A chord is named by its key: a person who writes Russian presses the key of `c` for Ctrl-C, and most terminals then
//! report `с`, the Cyrillic letter, with Ctrl. Some report the key beside it (the base key of the kitty keyboard protocol);
//! for the others the standard layouts of Russian (with the letters that Ukrainian and Belarusian have instead), Greek and
//! Hebrew are listed here.

/// The letters of a layout, key by key, over the keys of the layout of the United States.
const LAYOUTS: [(&str, &str); 4] = [
    (
        "ёйцукенгшщзхъфывапролджэячсмитьбю",
        "`qwertyuiop[]asdfghjkl;'zxcvbnm,.",
    ),
    ("їієґў", "]s'`o"),
    ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
    ("קראטוןםפשדגכעיחלךףזסבהנמצתץ", "ertyuiopasdfghjkl;zxcvbnm,."),
];

/// The signs that layouts of these scripts have on the key of a letter: Greek, Hebrew (two), Bulgarian. Of the Latin layouts in use only
/// two variants of Dvorak's have one of them there, the semicolon, and lose it in chords: nothing is bound to it.
const SIGNS: [(char, char); 4] = [(';', 'q'), ('/', 'q'), ('\'', 'w'), (',', 'q')];

/// Returns the character that names the key of a chord: that of the base key, which the host terminal may report, in a layout of
/// another script, and the key's own in a Latin one.
pub fn chord_key(own: char, base: Option<char>) -> char {
    let is_meant = |base: &char| !is_latin(own) || SIGNS.contains(&(own, *base));
    let base = base.filter(is_meant).or_else(|| latin_key(own));
    base.unwrap_or(own)
}

/// Reports whether a character is a letter of the Latin script, or a sign that layouts of all scripts have: those before
/// Greek.
pub const fn is_latin(c: char) -> bool {
    c < '\u{370}'
}

/// Returns the character that a Latin keyboard has on the key which types this letter; nothing for a Latin letter, which names
/// its key itself, and for one of no layout that is known here. The letter may be upper case, and then the result is too.
pub fn latin_key(letter: char) -> Option<char> {
    if is_latin(letter) {
        return None;
    }
    let lower = letter.to_lowercase().next().unwrap_or(letter);
    let key = LAYOUTS.iter().find_map(|(letters, keys)| {
        let at = letters.chars().position(|one| one == lower)?;
        keys.chars().nth(at)
    })?;
    Some(if lower == letter {
        key
    } else {
        key.to_ascii_uppercase()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_a_layout_has_a_key() {
        for (letters, keys) in LAYOUTS {
            assert_eq!(letters.chars().count(), keys.chars().count(), "{letters}");
        }
        for (letter, key) in [
            ('с', Some('c')),
            ('С', Some('C')),
            ('й', Some('q')),
            ('і', Some('s')),
            ('ψ', Some('c')),
            ('Σ', Some('S')),
            ('ב', Some('c')),
            ('/', None),
            ('é', None),
            ('c', None),
            ('日', None),
        ] {
            assert_eq!(latin_key(letter), key, "{letter}");
        }
    }
}
