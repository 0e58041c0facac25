//! The state of the guided tour.

/// The progress of the tour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tour {
    /// The index of the step, from 0; the number of steps once the tour is over.
    pub(in crate::app) step: usize,
}
