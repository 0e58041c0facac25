//! Enums that are written as words.

/// Gives an enum its words: `as_str`, `Display`, `FromStr` and serde, all from one list.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $expected:literal, { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// All values, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the word that this value is written as.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        // The derived reader takes a value that is no text for broken JSON, and names no field.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(reader)?;
                text.parse()
                    .map_err(|_| serde::de::Error::unknown_variant(&text, &[$($word),+]))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::lineage::LineageError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::lineage::LineageError::Word {
                        expected: $expected,
                        found: text.chars().take(64).collect(),
                    }),
                }
            }
        }
    };
}
pub(crate) use words;
