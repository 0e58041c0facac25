//! The parsing of the host terminal's replies.

use super::{HostColour, HostReply, numbers};
use crate::{ColourScheme, Rgb};

pub(super) fn colour_reply(body: &str) -> Option<HostReply> {
    let (number, value) = body.split_once(';')?;
    let (which, value) = match number {
        "10" => (HostColour::Foreground, value),
        "11" => (HostColour::Background, value),
        "12" => (HostColour::Cursor, value),
        "4" => {
            let (index, value) = value.split_once(';')?;
            (HostColour::Palette(index.parse().ok()?), value)
        }
        _ => return None,
    };
    Some(HostReply::Colour {
        which,
        rgb: colour(value)?,
    })
}

/// Parses `rgb:r/g/b` with one to four digits for each part, also with an alpha part, or `#rrggbb`.
fn colour(value: &str) -> Option<Rgb> {
    if let Some(digits) = value.strip_prefix('#').filter(|digits| digits.len() == 6) {
        let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        return Some(Rgb(part(0)?, part(2)?, part(4)?));
    }
    let parts = value.strip_prefix("rgb:").or(value.strip_prefix("rgba:"))?;
    let mut parts = parts.split('/').map(|part| {
        let digits = u32::try_from(part.len())
            .ok()
            .filter(|digits| (1..=4).contains(digits))?;
        let most = 16_u32.pow(digits) - 1;
        let level = u32::from_str_radix(part, 16).ok()?;
        Some(((level * 255 + most / 2) / most) as u8)
    });
    Some(Rgb(parts.next()??, parts.next()??, parts.next()??))
}

pub(super) fn sequence_reply(body: &str, end: u8) -> Option<HostReply> {
    let body = body.strip_prefix('?')?;
    match end {
        b'c' => Some(HostReply::DeviceAttributes(numbers(body)?)),
        b'u' => Some(HostReply::KittyFlags(body.parse().ok()?)),
        b'y' => {
            let [mode, value] = numbers(body.strip_suffix('$')?)?[..] else {
                return None;
            };
            Some(HostReply::ModeReport {
                mode,
                value: u8::try_from(value).ok()?,
            })
        }
        b'n' => match numbers(body)?[..] {
            [997, 1] => Some(HostReply::ColourScheme(ColourScheme::Dark)),
            [997, 2] => Some(HostReply::ColourScheme(ColourScheme::Light)),
            _ => None,
        },
        _ => None,
    }
}
