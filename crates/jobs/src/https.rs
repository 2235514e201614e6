//! One request over HTTPS to a checked address, on a connection of its own. What is sent, and what becomes of the
//! response, is the caller's business.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rapport_domain::destination::{Destination, Host, Refusal};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use crate::guard::{Guard, NotDialled, ResolveError};

/// How much memory a response's headers may take.
const MAX_HEADER_BYTES: usize = 64 * 1024;
const NO_ADDRESS: &str = "the host has no IP address";

/// Why there is no response. The reason is for the log: with it, a caller could explore the network that the service runs
/// in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    #[error("{0}")]
    Unreachable(String),
    /// A fault on our side.
    #[error("{0}")]
    Own(String),
}

impl NotSent {
    pub fn unreachable(error: impl std::error::Error) -> Self {
        let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        Self::Unreachable(format!("{error}{cause}"))
    }
}

/// The way to other hosts for one kind of request.
pub struct Https {
    guard: Arc<Guard>,
    tls: TlsConnector,
    tasks: TaskTracker,
    /// The option that allows an address which isn't public.
    option: &'static str,
}

impl Https {
    pub fn new(
        guard: Arc<Guard>,
        tls: rustls::ClientConfig,
        tasks: TaskTracker,
        option: &'static str,
    ) -> Self {
        Self { guard, tls: TlsConnector::from(Arc::new(tls)), tasks, option }
    }

    /// Sends a request, and returns as soon as the head of the response is there. The connection ends with the response.
    pub async fn send(
        &self,
        to: &Destination,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, NotSent> {
        let addresses = self.guard.addresses(to).await.map_err(|reason| self.not_dialled(reason))?;
        let stream = dial(&addresses, to.port()).await?;
        let name = match to.host() {
            Host::Ip(ip) => ServerName::from(ip),
            Host::Name(name) => ServerName::try_from(name.to_owned()).map_err(NotSent::unreachable)?,
        };
        let stream = self.tls.connect(name, stream).await.map_err(NotSent::unreachable)?;
        let handshake = http1::Builder::new().max_buf_size(MAX_HEADER_BYTES).handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(NotSent::unreachable)?;
        // The task ends when its response is dropped.
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        sender.send_request(request).await.map_err(NotSent::unreachable)
    }

    fn not_dialled(&self, reason: NotDialled) -> NotSent {
        let option = self.option;
        match reason {
            NotDialled::Refused(Refusal::ForbiddenAddress { address, range }) => NotSent::Unreachable(
                format!("the address {address} is not public ({range}); {option} {address} allows it"),
            ),
            NotDialled::Refused(refusal) => NotSent::Unreachable(refusal.to_string()),
            NotDialled::Unresolved(ResolveError::NotFound(_)) => NotSent::Unreachable(NO_ADDRESS.to_owned()),
            NotDialled::Unresolved(ResolveError::Own(error)) => NotSent::Own(error),
        }
    }
}

async fn dial(addresses: &[IpAddr], port: u16) -> Result<TcpStream, NotSent> {
    let mut last = NotSent::Unreachable(NO_ADDRESS.to_owned());
    for ip in addresses {
        match TcpStream::connect(SocketAddr::new(*ip, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = NotSent::unreachable(error),
        }
    }
    Err(last)
}
