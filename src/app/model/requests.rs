//! What the human asked for.

use serde::{Deserialize, Serialize};

use crate::transcript::human::Said;

/// The prompts that stand through the lineage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// The first one that a human gave: the objective of last resort.
    pub first: Option<Said>,
    /// The latest one, if it is another.
    pub latest: Option<Said>,
}
