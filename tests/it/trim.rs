//! Trim: copies of sessions with old tool output removed.
