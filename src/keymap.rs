//! Room `keymap`.
