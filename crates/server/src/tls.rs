//! TLS on the port, for addresses that other machines can reach.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{ApiError, READ_LIMIT, Stream};

/// A certificate with its key, ready for connections.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// Reads a certificate, with those that it is signed by, and its key; both in PEM.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, ApiError> {
        fn failed<E: std::error::Error + Send + Sync + 'static>(
            path: &Path,
        ) -> impl Fn(E) -> ApiError {
            move |source| ApiError::Tls {
                path: path.to_owned(),
                source: Box::new(source),
            }
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
            .map_err(failed(certificate))?
            .collect();
        let chain = chain.map_err(failed(certificate))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(failed(key))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed(certificate))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(failed(certificate))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

impl Stream for TlsStream<Box<dyn Stream>> {
    fn into_unix(self: Box<Self>) -> Option<UnixStream> {
        None
    }
}

/// Returns a connection as it is used: encrypted, where there is a certificate; `None` if the client does not manage that in time.
pub(super) async fn secured(stream: Box<dyn Stream>, tls: Option<Tls>) -> Option<Box<dyn Stream>> {
    let Some(Tls(acceptor)) = tls else {
        return Some(stream);
    };
    match timeout(READ_LIMIT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection without TLS was closed");
            None
        }
        Err(_) => None,
    }
}
