//! The directory that a supervisor works for.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The directory that a supervisor works for, as the records name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Project {
    /// The absolute path, for people; bytes that are not text are replaced.
    pub path: String,
    /// A hash of the path's bytes in sixteen hex digits: it names sockets and finds records.
    pub hash: String,
    /// The name of the machine: on a shared database equal paths on two machines are two projects.
    pub host: String,
}

impl Project {
    /// Names the project at the absolute `path` on the machine `host`.
    pub fn new(path: &Path, host: &str) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            hash: hash_name(path.as_os_str().as_encoded_bytes()),
            host: host.to_owned(),
        }
    }
}

/// Returns a name for these bytes, of sixteen hex digits, that stays the same for good.
pub fn hash_name(bytes: &[u8]) -> String {
    format!("{:016x}", fnv1a(bytes))
}

/// Computes the FNV-1a hash of 64 bits: it must never change, so the standard library's unspecified hash is not used.
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
