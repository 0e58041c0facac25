//! Opening a door: its directory, the leftovers of an old socket, the addresses that may be bound.
//!
//! The directory does the work: it is ours, not a link, and has mode 0700, so from the moment it has been
//! checked no other user can plant, swap or reach anything in it. That is why the socket's own mode may
//! be set after the bind: there is no process but ours that could connect in between.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::net::SocketAddrUnix;
use tokio::net::{TcpListener, UnixListener};

use super::{ApiError, Stream};
use crate::client;
use pitstop_core::config::load::paths::ensure_private_dir;

/// The longest path that the kernel accepts for a socket, in bytes without the closing NUL.
const PATH_LIMIT: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// A door that is open but not served yet.
#[derive(Debug)]
pub struct Listening {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unix {
        listener: UnixListener,
        file: SocketFile,
    },
    Tcp {
        listener: TcpListener,
        address: SocketAddr,
    },
}

impl Listening {
    /// Returns the address of a loopback door, with the port that the system chose.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.kind {
            Kind::Unix { .. } => None,
            Kind::Tcp { address, .. } => Some(address),
        }
    }

    /// Returns the port that a request's `Host` has to name; `None` on the Unix socket.
    pub(super) fn port(&self) -> Option<u16> {
        self.address().map(|address| address.port())
    }

    /// Waits for the next connection of our own user, and returns it with the id of the process at its other end, where the
    /// system reports it.
    pub(super) async fn accept(&self) -> io::Result<(Box<dyn Stream>, Option<u32>)> {
        let listener = match &self.kind {
            Kind::Tcp { listener, .. } => return Ok((Box::new(listener.accept().await?.0), None)),
            Kind::Unix { listener, .. } => listener,
        };
        loop {
            let (stream, _) = listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == our_uid() => {
                    let process = peer.pid().and_then(|pid| u32::try_from(pid).ok());
                    return Ok((Box::new(stream), process));
                }
                Ok(peer) => tracing::warn!(uid = peer.uid(), "refused another user's connection"),
                Err(error) => tracing::warn!(%error, "refused a connection of unknown origin"),
            }
        }
    }

    /// Removes the socket's file, unless another one was put there.
    ///
    /// The listener lives until then, so that no other supervisor takes the file for a dead one's, and no
    /// later file can have its inode number.
    pub(super) fn remove(self) {
        if let Kind::Unix { file, .. } = &self.kind {
            remove_if_still(&file.path, file.inode);
        }
    }
}

/// The file of a socket on which a process listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// Returns the path at which it was made.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reports whether it is still there, so that clients find it.
    pub fn is_there(&self) -> bool {
        is_still(&self.path, self.inode)
    }
}

/// Opens the control socket at `path`, in a directory that is private or is created as such.
///
/// A socket on which no process answers is a dead supervisor's and is replaced; one on which a process
/// answers is [`ApiError::Live`]. It needs a tokio runtime. It returns the socket's file too.
pub fn bind_control_socket(path: &Path) -> Result<(Listening, SocketFile), ApiError> {
    if SocketAddrUnix::new(path).is_err() {
        return Err(ApiError::PathTooLong {
            path: path.to_owned(),
            most: PATH_LIMIT,
            found: path.as_os_str().len(),
        });
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    ensure_private_directory(directory)?;
    clear_leftover(path)?;
    let listener = UnixListener::bind(path).map_err(ApiError::io("bind", path))?;
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(ApiError::io("set the mode of", path))?;
    let metadata = fs::symlink_metadata(path).map_err(ApiError::io("examine", path))?;
    let file = SocketFile {
        path: path.to_owned(),
        inode: metadata.ino(),
    };
    let kind = Kind::Unix {
        listener,
        file: file.clone(),
    };
    Ok((Listening { kind }, file))
}

/// Opens a port on a loopback address; any other address is refused.
pub async fn bind_loopback(address: SocketAddr) -> Result<Listening, ApiError> {
    if !address.ip().is_loopback() {
        return Err(ApiError::NotLoopback { address });
    }
    bind_port(address).await
}

/// Opens a port, which other machines can reach if the address is not one of loopback: then the caller has made sure that it is wanted.
pub async fn bind_port(address: SocketAddr) -> Result<Listening, ApiError> {
    let path = || PathBuf::from(address.to_string());
    let listener = TcpListener::bind(address)
        .await
        .map_err(ApiError::io("listen on", path()))?;
    let address = listener
        .local_addr()
        .map_err(ApiError::io("examine", path()))?;
    Ok(Listening {
        kind: Kind::Tcp { listener, address },
    })
}

/// Makes `path` a directory that only we can enter, or returns the reason why it is none.
pub(super) fn ensure_private_directory(path: &Path) -> Result<(), ApiError> {
    ensure_private_dir(path)?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    let above = fs::metadata(parent).map_err(ApiError::io("examine", parent))?;
    match unsafe_parent(&above) {
        Some(fault) => Err(ApiError::UnsafeDirectory {
            path: parent.to_owned(),
            fault,
        }),
        None => Ok(()),
    }
}

/// Describes the fault, if any, by which others could swap our directory in `parent` for one of theirs.
fn unsafe_parent(parent: &Metadata) -> Option<String> {
    let (mode, uid) = (parent.mode(), parent.uid());
    if uid != our_uid() && uid != 0 {
        return Some(format!("belongs to user {uid}"));
    }
    // The sticky bit lets only a file's owner rename it: /tmp is such a directory.
    (mode & 0o022 != 0 && mode & 0o1000 == 0)
        .then(|| format!("is open to others (mode {:04o})", mode & 0o7777))
}

/// Removes the socket of a supervisor that is gone.
fn clear_leftover(path: &Path) -> Result<(), ApiError> {
    let occupied = |found: &str| ApiError::Occupied {
        path: path.to_owned(),
        found: found.into(),
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ApiError::io("examine", path)(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(occupied("something that is no socket"));
    }
    if metadata.uid() != our_uid() {
        return Err(occupied("another user's socket"));
    }
    if client::is_answered(path) {
        return Err(ApiError::Live {
            path: path.to_owned(),
        });
    }
    tracing::info!(path = %path.display(), "removed the socket of a supervisor that is gone");
    fs::remove_file(path).map_err(ApiError::io("remove", path))
}

/// Removes a file if it is still the one that was made; a failure is only logged.
pub(super) fn remove_if_still(path: &Path, inode: u64) {
    if is_still(path, inode)
        && let Err(error) = fs::remove_file(path)
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove");
    }
}

/// Reports whether the file at the path is still the one that was made.
pub(super) fn is_still(path: &Path, inode: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.ino() == inode)
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener as StdListener;

    use super::*;
    use crate::secrets::tests::private_dir;

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_that_its_group_can_swap_is_refused_unless_that_is_sticky() {
        let top = tempfile::tempdir().unwrap();
        let open = top.path().join("open");
        fs::create_dir(&open).unwrap();
        with_mode(&open, 0o770);
        let refusal = ensure_private_directory(&open.join("run")).unwrap_err();
        assert!(refusal.to_string().contains("open to others (mode 0770)"));
        with_mode(&open, 0o1777);
        ensure_private_directory(&open.join("run")).unwrap();
    }

    #[tokio::test]
    async fn a_dead_supervisors_socket_is_replaced_and_a_live_one_is_not() {
        let dir = private_dir();
        let path = dir.path().join("p.sock");
        drop(StdListener::bind(&path).unwrap());
        assert!(path.exists(), "closing a socket leaves its file");
        let (first, _) = bind_control_socket(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert!(matches!(
            bind_control_socket(&path),
            Err(ApiError::Live { .. })
        ));
        first.remove();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_is_never_removed() {
        let dir = private_dir();
        let path = dir.path().join("p.sock");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(
            bind_control_socket(&path),
            Err(ApiError::Occupied { .. })
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        symlink("/nowhere", &path).unwrap();
        assert!(matches!(
            bind_control_socket(&path),
            Err(ApiError::Occupied { .. })
        ));
    }

    #[tokio::test]
    async fn a_path_too_long_for_a_socket_is_said_to_be() {
        let dir = private_dir();
        let path = dir.path().join("x".repeat(PATH_LIMIT));
        let message = bind_control_socket(&path).unwrap_err().to_string();
        assert!(message.contains(&format!("at most {PATH_LIMIT} bytes")));
        let room = PATH_LIMIT - dir.path().as_os_str().len() - 1;
        assert!(bind_control_socket(&dir.path().join("x".repeat(room))).is_ok());
    }

    #[tokio::test]
    async fn only_loopback_addresses_are_bound() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let outcome = bind_loopback(address.parse().unwrap()).await;
            assert!(
                matches!(outcome, Err(ApiError::NotLoopback { .. })),
                "{address}"
            );
        }
        let door = bind_loopback("127.0.0.1:0".parse().unwrap()).await.unwrap();
        assert_ne!(door.port(), Some(0));
    }
}
