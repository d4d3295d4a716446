//! TLS for a connection to PostgreSQL: that of the buckets' client, between the two libraries.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::base::{Error, Result};

/// How connections are made secure.
#[derive(Clone)]
pub struct Secure(Arc<ClientConfig>);

/// One connection, to be made.
pub struct Connecting {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
}

/// One that was made.
pub struct SecureStream(tokio_rustls::client::TlsStream<Socket>);

impl Secure {
    /// Servers must show a certificate that the system trusts, or one of the file `roots`.
    pub fn new(roots: Option<&str>) -> Result<Self> {
        // One installed earlier is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut store = RootCertStore::empty();
        match roots {
            None => drop(store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
            Some(file) => {
                let cannot = |e: &dyn std::fmt::Display| {
                    Error::invalid(format!("the certificates of the log's server in {file} cannot be read: {e}"))
                };
                for certificate in CertificateDer::pem_file_iter(file).map_err(|e| cannot(&e))? {
                    store.add(certificate.map_err(|e| cannot(&e))?).map_err(|e| cannot(&e))?;
                }
            }
        }
        Ok(Self(Arc::new(ClientConfig::builder().with_root_certificates(store).with_no_client_auth())))
    }
}

impl MakeTlsConnect<Socket> for Secure {
    type Stream = SecureStream;
    type TlsConnect = Connecting;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connecting> {
        let host = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Connecting { config: self.0.clone(), host })
    }
}

impl TlsConnect<Socket> for Connecting {
    type Stream = SecureStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<SecureStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(SecureStream(TlsConnector::from(self.config).connect(self.host, socket).await?)) })
    }
}

impl TlsStream for SecureStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for SecureStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for SecureStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
