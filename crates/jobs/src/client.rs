//! One attempt: a signed POST over HTTPS to a judged address, with one deadline over everything.
//!
//! Connections are kept and reused per destination (HTTP/1.1 keep-alive). No redirects, no
//! decompression, a capped body.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rapport_app::signature::sign;
use rapport_domain::delivery::{
    Attempt, CONNECT_TIMEOUT_SECONDS, Failure, MAX_EXCERPT_BYTES, Outcome, Reason, TOTAL_TIMEOUT_SECONDS,
    Timings,
};
use rapport_domain::destination::{Destination, Host};
use rapport_domain::time::Time;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use crate::guard::{Guard, NotDialled, ResolveError};

const AGENT: &str = concat!("Rapport/", env!("CARGO_PKG_VERSION"), " (webhooks)");
/// As many as may be under way: webhooks that share a host share its connections.
const MAX_IDLE_PER_DESTINATION: usize = 1024;
const MAX_IDLE_AGE: Duration = Duration::from_secs(30);
/// What a receiver's header may take of our memory.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// How long an attempt may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connect: Duration,
    pub total: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(CONNECT_TIMEOUT_SECONDS),
            total: Duration::from_secs(TOTAL_TIMEOUT_SECONDS),
        }
    }
}

/// What is sent.
pub struct Post<'a> {
    pub url: &'a str,
    pub secret: &'a str,
    pub event: &'static str,
    pub delivery: String,
    pub number: i64,
    pub payload: &'a str,
    pub reason: Reason,
}

pub struct Client {
    guard: Arc<Guard>,
    tls: TlsConnector,
    limits: Limits,
    idle: Mutex<HashMap<String, Vec<Idle>>>,
    tasks: TaskTracker,
}

struct Idle {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    since: Instant,
}

/// A connection in use.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    reused: bool,
}

/// Why an attempt got no answer, in the words of its record.
struct Broken {
    failure: Failure,
    error: String,
}

fn broken(failure: Failure, error: impl Into<String>) -> Broken {
    Broken { failure, error: error.into() }
}

/// What an attempt has learnt so far; kept when the deadline cuts it off.
#[derive(Default)]
struct Progress {
    timings: Timings,
    address: Option<SocketAddr>,
    code: Option<u16>,
    retry_after: Option<HeaderValue>,
    excerpt: Vec<u8>,
    excerpt_cut: bool,
}

/// The roots that receivers are verified against: the system's, and those the operator adds.
pub fn tls_config(extra_authorities: &[rustls::pki_types::CertificateDer<'static>]) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "some system certificates could not be read");
    }
    roots.add_parsable_certificates(native.certs);
    let (added, _) = roots.add_parsable_certificates(extra_authorities.iter().cloned());
    if added < extra_authorities.len() {
        tracing::warn!("some certificates given as extra authorities could not be used");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

impl Client {
    pub fn new(guard: Arc<Guard>, tls: rustls::ClientConfig, limits: Limits, tasks: TaskTracker) -> Self {
        let tls = TlsConnector::from(Arc::new(tls));
        Self { guard, tls, limits, idle: Mutex::default(), tasks }
    }

    /// Makes one attempt; whatever happens, the record says so.
    pub async fn attempt(&self, post: Post<'_>, started_at: Time) -> Attempt {
        let started = Instant::now();
        let mut progress = Progress::default();
        let ended = match tokio::time::timeout(self.limits.total, self.run(&post, &mut progress)).await {
            Ok(ended) => ended,
            Err(_) => Err(broken(Failure::Timeout, self.describe_timeout(&progress))),
        };
        progress.timings.total = micros(started);
        let retry_after = progress.retry_after.and_then(|value| seconds_to_wait(&value, started_at));
        let (outcome, error) = match (ended, progress.code) {
            (Ok(()), Some(code)) => (Outcome::Answered { code, retry_after }, None),
            (Ok(()), None) => (Outcome::Failed(Failure::Protocol), Some("no answer".to_owned())),
            (Err(Broken { failure, error }), _) => (Outcome::Failed(failure), Some(error)),
        };
        Attempt {
            started_at,
            reason: post.reason,
            outcome,
            error: error
                .or_else(|| progress.code.filter(|code| !(200..300).contains(code)).map(describe_code)),
            timings: progress.timings,
            address: progress.address.map(|address| address.to_string()),
            excerpt: progress.excerpt,
            excerpt_cut: progress.excerpt_cut,
        }
    }

    fn describe_timeout(&self, progress: &Progress) -> String {
        let seconds = self.limits.total.as_secs_f32();
        match progress.code {
            Some(code) => format!("timed out after {seconds} s: {code} came, but its body did not end"),
            None => format!("timed out after {seconds} s: no answer came"),
        }
    }

    async fn run(&self, post: &Post<'_>, progress: &mut Progress) -> Result<(), Broken> {
        let refused = |error: String| broken(Failure::Refused, error);
        let destination = Destination::parse(post.url).map_err(|refusal| refused(refusal.to_string()))?;
        let line = self.connect(&destination, progress, true).await?;
        let (reused, address) = (line.reused, line.address);
        match self.exchange(post, &destination, line, progress).await {
            // A kept connection may have been closed by the receiver just as it was used again:
            // nothing came back, so the same bytes go once more over a new one.
            Err(_) if reused && progress.code.is_none() => {
                tracing::debug!(%address, "a kept connection was gone; connecting anew");
                let line = self.connect(&destination, progress, false).await?;
                self.exchange(post, &destination, line, progress).await
            }
            ended => ended,
        }
    }

    async fn connect(
        &self,
        destination: &Destination,
        progress: &mut Progress,
        may_reuse: bool,
    ) -> Result<Line, Broken> {
        let connecting = self.connect_within(destination, progress, may_reuse);
        tokio::time::timeout(self.limits.connect, connecting).await.unwrap_or_else(|_| {
            let seconds = self.limits.connect.as_secs_f32();
            Err(broken(Failure::Timeout, format!("no connection within {seconds} s")))
        })
    }

    async fn connect_within(
        &self,
        destination: &Destination,
        progress: &mut Progress,
        may_reuse: bool,
    ) -> Result<Line, Broken> {
        let started = Instant::now();
        let addresses = self.guard.addresses(destination).await.map_err(not_dialled)?;
        if matches!(destination.host(), Host::Name(_)) {
            progress.timings.dns = Some(micros(started));
        }
        if may_reuse && let Some(line) = self.kept(destination, &addresses) {
            progress.address = Some(line.address);
            return Ok(line);
        }
        let started = Instant::now();
        let (stream, address) = dial(&addresses, destination.port(), progress).await?;
        progress.timings.connect = Some(micros(started));
        let started = Instant::now();
        let name = match destination.host() {
            Host::Ip(ip) => ServerName::from(ip),
            Host::Name(name) => ServerName::try_from(name.to_owned())
                .map_err(|_| broken(Failure::Tls, "the host is no name that TLS can verify"))?,
        };
        let stream = self.tls.connect(name, stream).await.map_err(tls_failed)?;
        progress.timings.tls = Some(micros(started));
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(Failure::Protocol, error.to_string()))?;
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(Line { sender, address, reused: false })
    }

    /// A kept connection to an address that may be dialled now.
    fn kept(&self, destination: &Destination, addresses: &[IpAddr]) -> Option<Line> {
        let mut idle = self.idle.lock();
        let kept = idle.get_mut(destination.authority())?;
        while let Some(Idle { sender, address, since }) = kept.pop() {
            let usable = since.elapsed() < MAX_IDLE_AGE && !sender.is_closed() && sender.is_ready();
            if usable && addresses.contains(&address.ip()) {
                return Some(Line { sender, address, reused: true });
            }
        }
        None
    }

    fn keep(&self, destination: &Destination, line: Line) {
        let mut idle = self.idle.lock();
        let kept = idle.entry(destination.authority().to_owned()).or_default();
        if kept.len() < MAX_IDLE_PER_DESTINATION {
            kept.push(Idle { sender: line.sender, address: line.address, since: Instant::now() });
        }
    }

    /// Closes kept connections that nobody has used for a while.
    pub fn close_idle(&self) {
        self.idle.lock().retain(|_, kept| {
            kept.retain(|idle| idle.since.elapsed() < MAX_IDLE_AGE && !idle.sender.is_closed());
            !kept.is_empty()
        });
    }

    async fn exchange(
        &self,
        post: &Post<'_>,
        destination: &Destination,
        mut line: Line,
        progress: &mut Progress,
    ) -> Result<(), Broken> {
        let started = Instant::now();
        let request = request(post, destination)?;
        line.sender.ready().await.map_err(protocol_failed)?;
        let response = line.sender.send_request(request).await.map_err(protocol_failed)?;
        progress.timings.first_byte = Some(micros(started));
        progress.code = Some(response.status().as_u16());
        progress.retry_after = response.headers().get(RETRY_AFTER).cloned();
        read_body(response, progress).await?;
        // A connection with something left on it is not used again.
        if !progress.excerpt_cut {
            self.keep(destination, line);
        }
        Ok(())
    }
}

fn request(post: &Post, destination: &Destination) -> Result<Request<Full<Bytes>>, Broken> {
    let own = |error: String| broken(Failure::Own, error);
    let header = |text: &str| HeaderValue::from_str(text).map_err(|error| own(error.to_string()));
    let request = Request::post(destination.path_and_query())
        .header(HOST, header(destination.authority())?)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(USER_AGENT, HeaderValue::from_static(AGENT))
        .header("x-service-signature", header(&sign(post.secret, post.payload.as_bytes()).to_string())?)
        .header("x-service-event", HeaderValue::from_static(post.event))
        .header("x-service-delivery", header(&post.delivery)?)
        .header("x-service-attempt", HeaderValue::from(post.number))
        .body(Full::new(Bytes::copy_from_slice(post.payload.as_bytes())));
    request.map_err(|error| own(error.to_string()))
}

async fn dial(
    addresses: &[IpAddr],
    port: u16,
    progress: &mut Progress,
) -> Result<(TcpStream, SocketAddr), Broken> {
    let mut last = broken(Failure::Connect, "no address to dial");
    for ip in addresses {
        let address = SocketAddr::new(*ip, port);
        progress.address = Some(address);
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok((stream, address));
            }
            Err(error) if is_ours(&error) => return Err(broken(Failure::Own, error.to_string())),
            Err(error) => last = broken(Failure::Connect, format!("{address}: {error}")),
        }
    }
    Err(last)
}

/// No sockets, no local address, no network: nothing about the receiver.
fn is_ours(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS))
        || matches!(
            error.kind(),
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::NetworkDown | io::ErrorKind::OutOfMemory
        )
}

fn not_dialled(reason: NotDialled) -> Broken {
    match reason {
        NotDialled::Refused(refusal) => broken(Failure::Refused, refusal.to_string()),
        NotDialled::Unresolved(ResolveError::NotFound(text)) => broken(Failure::Dns, text),
        NotDialled::Unresolved(ResolveError::Own(text)) => broken(Failure::Own, text),
    }
}

fn tls_failed(error: io::Error) -> Broken {
    let text = format!("TLS: {error}");
    let about_tls = error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
    broken(if about_tls { Failure::Tls } else { Failure::Protocol }, text)
}

fn protocol_failed(error: hyper::Error) -> Broken {
    use std::error::Error as _;
    let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    broken(Failure::Protocol, format!("{error}{cause}"))
}

/// `Retry-After` is seconds or a date (RFC 9110).
fn seconds_to_wait(retry_after: &HeaderValue, now: Time) -> Option<i64> {
    let text = retry_after.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than a number holds is more than is granted, too.
        return Some(text.parse().unwrap_or(i64::MAX));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    let micros = Time::from_timestamp(date.timestamp()).micros_since(now);
    (micros > 0).then(|| micros / 1_000_000 + i64::from(micros % 1_000_000 > 0))
}

async fn read_body(response: Response<Incoming>, progress: &mut Progress) -> Result<(), Broken> {
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let broken_off = protocol_failed(error);
            broken(broken_off.failure, format!("the body broke off: {}", broken_off.error))
        })?;
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_EXCERPT_BYTES - progress.excerpt.len();
        progress.excerpt.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            progress.excerpt_cut = true;
            return Ok(());
        }
    }
    Ok(())
}

fn describe_code(code: u16) -> String {
    let status = hyper::StatusCode::from_u16(code).ok();
    let words = status.and_then(|status| status.canonical_reason()).unwrap_or("unknown status");
    format!("{code} {words}")
}

fn micros(since: Instant) -> i64 {
    i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX)
}
