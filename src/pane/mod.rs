//! Room `pane`.
