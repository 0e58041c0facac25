//! The human's requests.

use serde::{Deserialize, Serialize};

use pitstop_transcript::human::Said;

/// The prompts that are kept through the lineage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// The first prompt that a human gave: the objective if there is no other.
    pub first: Option<Said>,
    /// The latest prompt, if it is not the first.
    pub latest: Option<Said>,
}
