//! The decoding of what sequences carry: hexadecimal digits and base64.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// The most capabilities that are answered for one query.
const CAPABILITY_LIMIT: usize = 32;

pub(super) fn capability_names(body: &[u8]) -> Vec<Vec<u8>> {
    body.split(|&byte| byte == b';')
        .take(CAPABILITY_LIMIT)
        .map(|name| decode_hex(name).unwrap_or_default())
        .collect()
}

fn decode_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, []) = text.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8))
        .collect()
}

/// Base64 as terminals read it: bits beyond the last byte do not count.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes standard base64 with or without padding; returns `None` if it contains any other byte.
pub(crate) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let unpadded = text.strip_suffix(b"==").or(text.strip_suffix(b"="));
    BASE64.decode(unpadded.unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_strictly() {
        assert_eq!(
            decode_base64(b"aGVsbG8=").as_deref(),
            Some(b"hello".as_slice())
        );
        assert_eq!(
            decode_base64(b"aGVsbG8").as_deref(),
            Some(b"hello".as_slice())
        );
        assert_eq!(decode_base64(b"").as_deref(), Some(b"".as_slice()));
        assert_eq!(decode_base64(b"aGVs bG8="), None);
        assert_eq!(decode_base64(b"a"), None);
    }
}
