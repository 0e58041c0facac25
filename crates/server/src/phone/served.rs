//! The address at which the page is served now. The supervisor that serves it writes it into a file, and keeps that locked meanwhile:
//! so what one that was killed has written counts no more.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
};

use rustix::{
    fs::{FlockOperation, OFlags, fcntl_lock},
    process::{Flock, FlockType, fcntl_getlk},
};

use super::devices::DeviceStore;
use pitstop_base::private_file;

/// The name of the file.
const FILE: &str = "page.address";

/// The longest address that is read, in bytes.
const LIMIT: u64 = 4 * 1024;

impl DeviceStore {
    /// Makes an address known for as long as the returned file is open. It is an error if another supervisor serves the page.
    pub fn announce(&self, address: &str) -> io::Result<File> {
        let path = self.directory().join(FILE);
        let mut file = private_file::open(&path, OFlags::WRONLY | OFlags::CREATE)?;
        // Of all kinds of locks this is the one that another process can see without taking it.
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.set_len(0)?;
        file.write_all(address.as_bytes())?;
        Ok(file)
    }

    /// Returns the address at which another process serves the page now.
    pub fn served_at(&self) -> Option<String> {
        let file = private_file::open(&self.directory().join(FILE), OFlags::RDONLY).ok()?;
        fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
        let mut address = String::new();
        file.take(LIMIT).read_to_string(&mut address).ok()?;
        Some(address).filter(|address| !address.is_empty())
    }
}
