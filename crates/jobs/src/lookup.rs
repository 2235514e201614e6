//! Fetches a home page: over HTTPS, to checked addresses only, following a few redirects that are checked
//! too, with one deadline for everything. Reads only as much of the page as is needed.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, LOCATION,
    USER_AGENT,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rapport_app::lookup::{FetchError, Fetched, HomePages};
use rapport_domain::destination::{Destination, Host, Refusal};
use rapport_domain::lookup::{MAX_PAGE_BYTES, MAX_REDIRECTS, MAX_SECONDS, redirected};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use crate::guard::{BoxFuture, Guard, NotDialled, ResolveError};

const AGENT: &str = concat!("Rapport/", env!("CARGO_PKG_VERSION"), " (lookup)");
/// How many pages may be fetched at once.
const AT_ONCE: usize = 16;
/// How much memory a page's headers may take.
const MAX_HEADER_BYTES: usize = 64 * 1024;
const NO_ADDRESS: &str = "the domain has no IP address";

pub struct Lookup {
    guard: Arc<Guard>,
    tls: TlsConnector,
    total: Duration,
    slots: Semaphore,
    tasks: TaskTracker,
}

impl Lookup {
    pub fn new(guard: Arc<Guard>, tls: rustls::ClientConfig, tasks: TaskTracker) -> Self {
        let tls = TlsConnector::from(Arc::new(tls));
        let total = Duration::from_secs(MAX_SECONDS);
        Self { guard, tls, total, slots: Semaphore::new(AT_ONCE), tasks }
    }

    /// Sets another deadline, for tests.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    async fn follow(&self, page: &Destination) -> Result<Fetched, FetchError> {
        let mut at = page.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get(&at).await?;
            let code = response.status().as_u16();
            let location = response.headers().get(LOCATION).filter(|_| matches!(code, 301..=303 | 307 | 308));
            if let Some(location) = location {
                let location = String::from_utf8_lossy(location.as_bytes());
                at = redirected(&at, &location).map_err(|fault| FetchError::BadRedirect(fault.detail))?;
                continue;
            }
            return if response.status().is_success() {
                receive(at, response).await
            } else {
                Err(FetchError::Answered(code))
            };
        }
        Err(FetchError::TooManyRedirects)
    }

    async fn get(&self, page: &Destination) -> Result<Response<Incoming>, FetchError> {
        let addresses = self.guard.addresses(page).await.map_err(not_dialled)?;
        let stream = dial(&addresses, page.port()).await?;
        let name = match page.host() {
            Host::Ip(ip) => ServerName::from(ip),
            Host::Name(name) => ServerName::try_from(name.to_owned()).map_err(unreachable)?,
        };
        let stream = self.tls.connect(name, stream).await.map_err(unreachable)?;
        let handshake = http1::Builder::new().max_buf_size(MAX_HEADER_BYTES).handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(unreachable)?;
        // The task ends when its response is dropped.
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        sender.send_request(request(page)?).await.map_err(unreachable)
    }
}

impl HomePages for Lookup {
    fn fetch<'a>(&'a self, page: &'a Destination) -> BoxFuture<'a, Result<Fetched, FetchError>> {
        Box::pin(async move {
            let _slot = self.slots.try_acquire().map_err(|_| FetchError::Busy)?;
            let late =
                || Err(FetchError::Unreachable(format!("no page within {} s", self.total.as_secs_f32())));
            tokio::time::timeout(self.total, self.follow(page)).await.unwrap_or_else(|_| late())
        })
    }
}

fn request(page: &Destination) -> Result<Request<Empty<Bytes>>, FetchError> {
    let own = |error: String| FetchError::Own(error);
    let host = HeaderValue::from_str(page.authority()).map_err(|error| own(error.to_string()))?;
    let request = Request::get(page.path_and_query())
        .header(HOST, host)
        .header(USER_AGENT, HeaderValue::from_static(AGENT))
        .header(ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml"))
        .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Empty::new());
    request.map_err(|error| own(error.to_string()))
}

async fn dial(addresses: &[IpAddr], port: u16) -> Result<TcpStream, FetchError> {
    let mut last = FetchError::Unreachable(NO_ADDRESS.to_owned());
    for ip in addresses {
        match TcpStream::connect(SocketAddr::new(*ip, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = unreachable(error),
        }
    }
    Err(last)
}

/// Reads the beginning of an HTML page.
async fn receive(at: Destination, response: Response<Incoming>) -> Result<Fetched, FetchError> {
    let header = |name| {
        let value = response.headers().get(name);
        value.map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let content_type = header(CONTENT_TYPE);
    let encoding = header(CONTENT_ENCODING);
    let is_plain = encoding.is_none_or(|encoding| encoding.trim().eq_ignore_ascii_case("identity"));
    if !is_html(content_type.as_deref()) || !is_plain {
        return Err(FetchError::NotHtml);
    }
    let (mut body, mut received) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            // The part received may be enough.
            Err(_) if !received.is_empty() => break,
            Err(error) => return Err(unreachable(error)),
        };
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_PAGE_BYTES - received.len();
        received.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() >= room {
            break;
        }
    }
    Ok(Fetched { at, content_type, body: received })
}

fn is_html(content_type: Option<&str>) -> bool {
    let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml"].iter().any(|html| essence.eq_ignore_ascii_case(html))
}

fn not_dialled(reason: NotDialled) -> FetchError {
    match reason {
        NotDialled::Refused(Refusal::ForbiddenAddress { address, range }) => FetchError::Unreachable(
            format!("the address {address} is not public ({range}); --allow-lookup {address} allows it"),
        ),
        NotDialled::Refused(refusal) => FetchError::Unreachable(refusal.to_string()),
        NotDialled::Unresolved(ResolveError::NotFound(_)) => FetchError::Unreachable(NO_ADDRESS.to_owned()),
        NotDialled::Unresolved(ResolveError::Own(error)) => FetchError::Own(error),
    }
}

fn unreachable(error: impl std::error::Error) -> FetchError {
    let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    FetchError::Unreachable(format!("{error}{cause}"))
}
