//! Room `breakpoint`.
