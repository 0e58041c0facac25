//! Turns records into statements, and rows back into records: pure, and the only place that knows columns.

mod bind;
mod read;
mod record;
mod write;

pub(super) use self::{read::*, record::*, write::Write};
