//! Tests of the number of cells that characters take, measured as a program does by querying the cursor's position.

use unicode_width::UnicodeWidthChar;

use super::*;

/// Returns the column of the cursor after this text at the start of a row, from 0.
fn measured(screen: &mut Screen, text: &str) -> u16 {
    let answer = replies(screen, format!("\x1b[2J\x1b[H{text}\x1b[6n")).concat();
    let column = answer.trim_end_matches('R').rsplit(';').next();
    column
        .and_then(|column| column.parse::<u16>().ok())
        .unwrap()
        - 1
}

/// Fails if fewer than this share of the texts, in percent, takes so many cells.
#[track_caller]
fn enough_take(cells: u16, percent: usize, texts: &[String]) {
    let mut screen = screen(20, 3);
    let wrong: Vec<&String> = texts
        .iter()
        .filter(|text| measured(&mut screen, text) != cells)
        .collect();
    let right = texts.len() - wrong.len();
    let kept = &wrong[..wrong.len().min(20)];
    assert!(
        right * 100 >= texts.len() * percent,
        "{right} of {}; not {kept:?}",
        texts.len()
    );
}

#[test]
fn what_a_selector_makes_an_emoji_takes_two_cells() {
    let plain = "©®‼⁉™ℹ↔↕↖↗↘↙↩↪⌨⏏⏭⏮⏯⏱⏲⏸⏹⏺Ⓜ▪▫▶◀◻◼☀☁☂☃☄☎☑☘☝☠☢☣☦☪☮☯☸☹☺♀♂♟♠♣♥♦♨♻♾⚒⚔⚕⚖⚗⚙⚛⚜⚠⚧⚰⚱⛈⛏⛑⛓⛩⛰⛱⛴⛷⛸⛹✂✈✉✌✍✏✒✔✖✝✡✳✴❄❇❣❤➡⤴⤵⬅⬆⬇〰〽㊗㊙🅰🅱🌡🌶🍽🎖🏋🏳🏵🐿👁🕉🕊🖐🗣🛠🛰";
    let texts: Vec<String> = plain.chars().map(|c| format!("{c}\u{fe0f}")).collect();
    enough_take(2, 97, &texts);
    let keys: Vec<String> = "0123456789#*"
        .chars()
        .map(|c| format!("{c}\u{fe0f}\u{20e3}"))
        .collect();
    enough_take(2, 97, &keys);
}

#[test]
fn what_joiners_make_one_takes_two_cells() {
    let mut texts = Vec::new();
    for person in ['👨', '👩', '🧑'] {
        for tone in ["", "🏻", "🏼", "🏽", "🏾", "🏿"] {
            for thing in "🌾🍳🍼🎓🎤🎨🏫🏭💻💼🔧🔬🚀🚒🦯🦰🦱🦲🦳🦼🦽".chars()
            {
                texts.push(format!("{person}{tone}\u{200d}{thing}"));
            }
            for thing in "⚕⚖✈".chars() {
                texts.push(format!("{person}{tone}\u{200d}{thing}\u{fe0f}"));
            }
        }
    }
    for base in "🏃🏄🏊👮👯💁🙅🙋🤦🤷🧖".chars() {
        for sign in ['♀', '♂'] {
            texts.push(format!("{base}\u{200d}{sign}\u{fe0f}"));
        }
    }
    for parents in ["👨\u{200d}👩", "👩\u{200d}👩", "👨"] {
        for children in ["👦", "👧", "👧\u{200d}👦", "👦\u{200d}👦"] {
            texts.push(format!("{parents}\u{200d}{children}"));
        }
    }
    enough_take(2, 84, &texts);
}

#[test]
fn two_letters_of_a_flag_take_two_cells() {
    let letters: Vec<char> = ('\u{1f1e6}'..='\u{1f1ff}').collect();
    let pairs = letters
        .iter()
        .flat_map(|first| letters.iter().map(move |second| format!("{first}{second}")));
    enough_take(2, 100, &pairs.collect::<Vec<_>>());
}

/// The number of cells that the client counts for each assigned code point; see the file.
const CLIENT: &str = include_str!("client_widths.txt");

#[test]
fn each_code_point_takes_the_cells_that_the_client_counts() {
    let mut screen = screen(20, 3);
    let number = |digits: &str| u32::from_str_radix(digits, 16).unwrap();
    let mut wrong = Vec::new();
    let lines = CLIENT.lines().filter(|line| !line.starts_with('#'));
    for run in lines.chain(["21-7e:1"]).flat_map(str::split_whitespace) {
        let (range, cells) = run.split_once(':').unwrap();
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let cells: u16 = cells.parse().unwrap();
        for c in (number(first)..=number(last)).filter_map(char::from_u32) {
            let alone = measured(&mut screen, &c.to_string());
            // The base of an accent keeps its width; the enclosing keycap widens its base to two cells.
            let behind = measured(&mut screen, &format!("a{c}b")) - 2;
            let keycap = c == '\u{20e3}';
            if (alone, behind) != (cells, cells) && !keycap {
                wrong.push(format!(
                    "{:x}: {alone} and {behind}, not {cells}",
                    u32::from(c)
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}: {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(40)]
    );
}

/// Words and clusters, each with the cells that the client counts.
const CLUSTERS: &str = include_str!("client_clusters.txt");

#[test]
fn each_cluster_takes_the_cells_that_the_client_counts() {
    let mut screen = screen(60, 3);
    let lines = CLUSTERS.lines().filter(|line| !line.starts_with('#'));
    let wrong: Vec<_> = lines
        .filter_map(|line| {
            let (text, cells) = line.split_once('\t').unwrap();
            let (taken, cells) = (measured(&mut screen, text), cells.parse::<u16>().unwrap());
            (taken != cells).then(|| format!("{text} takes {taken}, not {cells}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}: {wrong:?}", wrong.len());
}

proptest! {
    #[test]
    fn the_cursor_is_behind_what_the_cells_show(text in "[ -~¡-ÿ日本語가★⚠❤👩🚀🇩🇪👍\u{1f3fd}\u{200d}\u{fe0f}\u{301}]{0,8}") {
        let mut screen = screen(40, 2);
        let column = measured(&mut screen, &text);
        let mut cells = 0;
        screen.for_each_cell(|cell| {
            let visible = cell.text != " " || text.contains(' ');
            if cell.row == 0 && visible && cell.column < column {
                cells = cells.max(cell.column + cell.width);
            }
        });
        // Blanks at the end of the text look like the rest of the row.
        prop_assert!(cells <= column, "{cells} of {column}");
        let most: usize = text.chars().filter_map(UnicodeWidthChar::width).map(|width| width + 1).sum();
        prop_assert!(usize::from(column) <= most);
    }
}
