//! The cost of a turn now, and in a fresh session: from the session's own figures.
//!
//! The client reports the cost of the whole session. The rise from one prompt to the next is the cost of a turn. Most of that is
//! reading the contents of the context window, so a turn of a fresh session costs about as much less as its base load is smaller.
//! Where a figure is missing nothing is shown.

use crate::app::{facts::base_load, model::Model};

/// The cost of a turn, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnCost {
    /// The cost of a turn by the last turns.
    pub now: f64,
    /// The cost of a turn in a fresh session, if its base load is known and smaller.
    pub fresh: Option<f64>,
}

/// Returns what a turn costs; `None` before two turns are known.
pub fn per_turn(model: &Model) -> Option<TurnCost> {
    let (now, used) = model.session.costs.median()?;
    let base = base_load(model).filter(|base| base.0 > 0 && *base < used);
    let fresh = base.map(|base| now * base.0 as f64 / used.0 as f64);
    Some(TurnCost { now, fresh })
}
