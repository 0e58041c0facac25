//! The port: for scripts, if one is configured, and for the page of paired devices.
//!
//! ```text
//!                 listen is set   none is paired     a device is paired
//!   the port      listens         listens            listens
//!   … is not set  –               –                  listens on 127.0.0.1:7433
//! ```
//!
//! One supervisor holds the port, and its page shows the sessions of all. A port that another program has is tried again, so that
//! another supervisor takes it over when the first ends.

use std::{future::pending, io, net::SocketAddr, time::Duration};

use tokio::{sync::watch, task::JoinHandle, time::sleep};

use crate::runtime::notices::Notices;
use pitstop_base::clean::chain;
use pitstop_core::config::{ApiConfig, load::paths::Paths};
use pitstop_server::{
    ApiError, Keys, Listening, RequestQueue, Tls, bind_loopback, bind_port,
    phone::{Gateway, GatewayPlan, PAGE_ADDRESS},
    serve_port,
};

/// The time between two attempts to get a port that another program has, and between two looks whether a pairing is over.
const AGAIN: Duration = Duration::from_secs(1);

/// The port of this supervisor.
pub(super) struct Port {
    address: SocketAddr,
    /// The queue for scripts; `None` if the port is there for the page alone.
    scripts: Option<(Keys, RequestQueue)>,
    gateway: Gateway,
    tls: Option<Tls>,
    /// True if other machines may reach the address.
    may_be_reached: bool,
    stopped: watch::Receiver<bool>,
}

impl Port {
    /// Plans the port.
    pub fn new(
        api: &ApiConfig,
        paths: &Paths,
        scripts: (Keys, RequestQueue),
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, ApiError> {
        let gateway = Gateway::new(GatewayPlan {
            state_dir: paths.state_dir().to_owned(),
            run_dirs: paths.run_dirs().map(ToOwned::to_owned).collect(),
            url: api.url.clone(),
        });
        let files = api.certificate.as_deref().zip(api.key.as_deref());
        let tls = files.map(|(certificate, key)| Tls::load(certificate, key));
        let tls = tls.transpose()?;
        Ok(Self {
            address: api.listen.unwrap_or(PAGE_ADDRESS),
            scripts: api.listen.map(|_| scripts),
            gateway,
            may_be_reached: api.behind_proxy || tls.is_some(),
            tls,
            stopped,
        })
    }

    /// Serves the port from now on, whenever it should be there. A configured address that cannot be listened on is an error, unless
    /// another program has it.
    pub async fn start(mut self) -> Result<JoinHandle<()>, ApiError> {
        let first = match self.scripts {
            Some(_) => self.bind().await?,
            None => None,
        };
        Ok(tokio::spawn(async move { self.run(first).await }))
    }

    async fn run(&mut self, mut bound: Option<Listening>) {
        let mut notices = Notices::new("the paired devices");
        let mut is_logged = false;
        while !self.is_stopped() {
            if !self.is_wanted() {
                self.wait_for_a_device(&mut notices).await;
                continue;
            }
            let listening = match bound.take() {
                Some(listening) => Ok(Some(listening)),
                None => self.bind().await,
            };
            if let Ok(Some(listening)) = listening {
                is_logged = false;
                tracing::info!(address = %self.address, "listening");
                self.serve(listening).await;
                continue;
            }
            if !is_logged {
                is_logged = true;
                let why = listening.err().map(|error| chain(&error));
                tracing::warn!(address = %self.address, why, "the port is not ours yet");
            }
            self.pause(sleep(AGAIN)).await;
        }
    }

    /// Reports whether the supervisor ends; a sender that is gone means the same.
    fn is_stopped(&self) -> bool {
        *self.stopped.borrow() || self.stopped.has_changed().is_err()
    }

    /// Reports whether the port should be there now.
    fn is_wanted(&self) -> bool {
        self.scripts.is_some() || self.gateway.is_active()
    }

    /// Opens the port; `None` if another program has it.
    async fn bind(&self) -> Result<Option<Listening>, ApiError> {
        let bound = if self.may_be_reached {
            bind_port(self.address).await
        } else {
            bind_loopback(self.address).await
        };
        match bound {
            Ok(listening) => Ok(Some(listening)),
            Err(ApiError::Io { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Serves the port until the supervisor ends, or until no device is paired any more if the port serves only devices.
    async fn serve(&self, listening: Listening) {
        let over = async {
            if self.scripts.is_some() {
                return self.pause(pending()).await;
            }
            while !self.is_stopped() && self.is_wanted() {
                self.pause(sleep(AGAIN)).await;
            }
        };
        let scripts = self.scripts.clone();
        let tls = self.tls.clone();
        let address = listening.address().unwrap_or(self.address);
        let url = self.gateway.page_url(address, tls.is_some());
        let known = self.gateway.store().announce(&url);
        if let Err(error) = &known {
            tracing::warn!(url, %error, "`pitstop phone` will not name this address");
        }
        serve_port(listening, tls, &self.gateway, scripts, over).await;
    }

    /// Waits until a device may have been paired, or a pairing opened.
    async fn wait_for_a_device(&self, notices: &mut Notices) {
        notices.watch(self.gateway.store().files());
        // It may have happened just before.
        if !self.is_wanted() {
            self.pause(notices.changed(false)).await;
        }
    }

    /// Waits for something, but no longer than until the supervisor ends.
    async fn pause(&self, awaited: impl Future<Output = ()>) {
        let mut stopped = self.stopped.clone();
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => {}
            () = awaited => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use tokio::time::{Instant, timeout_at};

    use super::*;
    use pitstop_server::phone::devices::{DeviceRight, DeviceStore, Moment};

    /// The longest time that anything may take on a machine that others use too.
    const SOON: Duration = Duration::from_secs(60);

    async fn until(what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + SOON;
        while !is_so() {
            let pause = sleep(Duration::from_millis(10));
            assert!(timeout_at(end, pause).await.is_ok(), "never: {what}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn without_a_configured_address_the_port_is_there_while_someone_is_paired() {
        let home = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        let gateway = Gateway::new(GatewayPlan {
            state_dir: home.path().join("state"),
            ..GatewayPlan::default()
        });
        let (stop, stopped) = watch::channel(false);
        let port = Port {
            address,
            scripts: None,
            gateway,
            tls: None,
            may_be_reached: false,
            stopped,
        };
        let serving = port.start().await.unwrap();
        let store = DeviceStore::new(&home.path().join("state"));
        let open = || {
            store
                .open_pairing(DeviceRight::Watch, Moment::now())
                .unwrap()
        };
        let code = open();
        // Another program has it, and lets go of it.
        assert!(!serving.is_finished());
        drop(free);
        let is_open = || TcpStream::connect(address).is_ok();
        until("the port opens for a pairing", is_open).await;
        store.close_pairing(&code).unwrap();
        until("the port closes behind it", || !is_open()).await;
        store.pair(&open(), "phone", Moment::now()).unwrap();
        until("the port opens for a device", is_open).await;
        store.revoke(|_| true).unwrap();
        until("the port closes when it is revoked", || !is_open()).await;
        stop.send(true).unwrap();
        serving.await.unwrap();
    }
}
