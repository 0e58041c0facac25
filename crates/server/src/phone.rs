//! The page for paired devices: a gateway to all sessions of this user on this machine.
//!
//! Whichever supervisor holds the port serves the page, and asks each session over its control socket, its own session too. So a device
//! sees the same no matter which supervisor serves it.
//!
//! ```text
//!   device ── cookie and key ──► routes ── control token, name of the device ──► a session's socket
//! ```
//!
//! # Trust boundary
//!
//! A device proves itself by two secrets: a cookie that no script can read, and a key that only the page can, because a cookie is sent to
//! every port of its host. A page of another origin has neither, and its requests are refused by `Host`, `Origin` and `Sec-Fetch-Site`
//! before they are looked at. A device that may watch sends no order. What a session answers is passed on unread, as text.

pub mod devices;
mod limit;
mod page;
mod routes;
mod served;
mod sessions;
mod stream;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use devices::{Device, DeviceStore, KnownDevices, Moment};
use limit::Limit;

/// The address of the page while none is configured.
pub const PAGE_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7433);

/// The most failed pairings in a minute.
pub const PAIRINGS_A_MINUTE: usize = 5;

/// The most orders of a device in a minute.
pub const ORDERS_A_MINUTE: usize = 30;

/// The most streams of events of a device at a time. A newer one takes the place of the oldest: a phone that has changed its network
/// begins another one, and it takes the system a quarter of an hour to notice that the one before has no other end.
const STREAM_COUNT: usize = 4;

/// The plan for a gateway.
#[derive(Clone, Debug, Default)]
pub struct GatewayPlan {
    /// The directory with the files of the devices.
    pub state_dir: PathBuf,
    /// The directories in which sessions have their sockets.
    pub run_dirs: Vec<PathBuf>,
    /// The address by which devices reach the page, without a slash at its end.
    pub url: Option<String>,
}

/// The gateway from paired devices to the sessions.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    devices: KnownDevices,
    run_dirs: Vec<PathBuf>,
    url: Option<String>,
    pairings: Mutex<Limit>,
    /// The limit of each device, by its pairing.
    orders: Mutex<HashMap<String, Limit>>,
    /// The streams of each device, by its pairing, the oldest first: each ends with its sender.
    streams: Mutex<HashMap<String, VecDeque<oneshot::Sender<()>>>>,
}

impl Gateway {
    /// Creates a gateway.
    pub fn new(plan: GatewayPlan) -> Self {
        Self(Arc::new(Shared {
            devices: KnownDevices::new(DeviceStore::new(&plan.state_dir)),
            run_dirs: plan.run_dirs,
            url: plan.url,
            pairings: Mutex::new(Limit::new(PAIRINGS_A_MINUTE)),
            orders: Mutex::default(),
            streams: Mutex::default(),
        }))
    }

    /// Returns the store of the devices.
    pub fn store(&self) -> &DeviceStore {
        self.0.devices.store()
    }

    /// Returns the address by which devices reach the page behind a door at this address.
    pub fn page_url(&self, address: SocketAddr, is_tls: bool) -> String {
        page_url(self.0.url.as_deref(), address, is_tls)
    }

    /// Reports whether there is anyone to serve: a device is paired, or a pairing is open.
    pub fn is_active(&self) -> bool {
        !self.0.devices.now().is_empty() || self.store().is_active(Moment::now())
    }

    fn is_paired(&self, device: &Device) -> bool {
        self.0.devices.is_paired(device)
    }

    /// Counts an attempt to pair, or returns false if too many have failed.
    fn admits_pairing(&self, now: Instant) -> bool {
        self.0.pairings.lock().admits(now)
    }

    /// Takes back what was counted of an attempt that did not fail.
    fn has_paired(&self) {
        self.0.pairings.lock().take_back();
    }

    /// Counts an order of a device, or returns false if it has given too many.
    fn admits_order(&self, device: &Device, now: Instant) -> bool {
        let mut orders = self.0.orders.lock();
        let devices = self.0.devices.now();
        orders.retain(|id, _| devices.iter().any(|device| device.id() == id));
        let limit = orders.entry(device.id().to_owned());
        limit
            .or_insert_with(|| Limit::new(ORDERS_A_MINUTE))
            .admits(now)
    }

    /// Makes room for a stream of a device; what is returned resolves once the stream has to end for newer ones.
    fn admit_stream(&self, device: &Device) -> oneshot::Receiver<()> {
        let mut streams = self.0.streams.lock();
        streams.retain(|_, open| {
            open.retain(|one| !one.is_closed());
            !open.is_empty()
        });
        let open = streams.entry(device.id().to_owned()).or_default();
        if open.len() == STREAM_COUNT {
            open.pop_front();
        }
        let (stream, ended) = oneshot::channel();
        open.push_back(stream);
        ended
    }

    /// Returns the routes of the page behind a door at this address.
    pub(super) fn router(
        &self,
        address: SocketAddr,
        is_tls: bool,
        closing: watch::Receiver<bool>,
    ) -> Router {
        routes::router(routes::PhoneState {
            gateway: self.clone(),
            hosts: hosts(address, self.0.url.as_deref()).into(),
            is_tls,
            closing,
        })
    }
}

/// A name by which the page is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    /// The name with its port, as in the header `Host`.
    name: String,
    /// True if devices reach it by https, no matter which program terminates TLS.
    is_https: bool,
}

/// Returns the names by which the page is reached: ours with the port, and that of the configured address. A page whose own name
/// has been made to resolve to us still sends that name.
fn hosts(address: SocketAddr, url: Option<&str>) -> Vec<Host> {
    let host = |name: String, is_https| Host { name, is_https };
    let port = address.port();
    let ours = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
    let mut hosts: Vec<Host> = ours.into_iter().map(|name| host(name, false)).collect();
    if !address.ip().is_loopback() && !address.ip().is_unspecified() {
        hosts.push(host(address.to_string(), false));
    }
    if let Some((scheme, name)) = url.and_then(|url| url.split_once("://")) {
        hosts.push(host(name.to_owned(), scheme == "https"));
    }
    hosts
}

/// Returns the configured address of the page, or else that of its port on this machine.
pub fn page_url(url: Option<&str>, mut address: SocketAddr, is_tls: bool) -> String {
    if let Some(url) = url {
        return url.to_owned();
    }
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Reports whether a session of this user answers, so that there is a supervisor which can serve the page.
pub fn has_session<'a>(run_dirs: impl IntoIterator<Item = &'a Path>) -> bool {
    let mut dirs = run_dirs.into_iter();
    dirs.any(sessions::has_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_its_configured_address_or_that_of_its_port() {
        for (url, address, is_tls, expected) in [
            (None, "127.0.0.1:7433", false, "http://127.0.0.1:7433"),
            (None, "[::1]:80", false, "http://[::1]:80"),
            (None, "0.0.0.0:99", true, "https://127.0.0.1:99"),
            (Some("https://a.b"), "127.0.0.1:1", false, "https://a.b"),
        ] {
            assert_eq!(page_url(url, address.parse().unwrap(), is_tls), expected);
        }
    }

    #[test]
    fn the_page_is_reached_by_our_names_and_by_the_configured_one() {
        let names = |address: &str, url| -> Vec<(String, bool)> {
            let hosts = hosts(address.parse().unwrap(), url);
            hosts
                .into_iter()
                .map(|one| (one.name, one.is_https))
                .collect()
        };
        let found = names("127.0.0.1:7433", Some("https://desk.example.ts.net"));
        let ours = ["127.0.0.1:7433", "localhost:7433", "[::1]:7433"];
        let ours = ours.map(|name| (name.to_owned(), false));
        assert_eq!(found[..3], ours);
        assert_eq!(found[3..], [("desk.example.ts.net".to_owned(), true)]);
        assert_eq!(names("0.0.0.0:7433", None), ours);
        assert_eq!(names("192.0.2.1:7433", None)[3].0, "192.0.2.1:7433");
    }
}
