//! Timestamps in files and in the database: UTC, to the millisecond, always 24 characters, so that
//! their order as text is their order in time.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Returns the timestamp as text.
pub fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Serializes a moment as its 24 characters, for `#[serde(serialize_with)]`.
///
/// # Errors
///
/// Returns the serializer's own error.
pub fn serialize<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*at))
}

/// Reads what [`serialize`] wrote, for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// Returns the deserializer's own error, also for text that is no moment.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    DateTime::<Utc>::deserialize(deserializer)
}

#[allow(clippy::ref_option)] // the signature is serde's
pub(crate) fn option<S: Serializer>(
    at: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    at.map(text).serialize(serializer)
}
