//! The state of the guided tour.

/// How far the tour is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tour {
    /// The step, from 0; as many as there are once it is over.
    pub(in crate::app) step: usize,
}
