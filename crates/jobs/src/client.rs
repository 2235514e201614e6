//! One attempt: a signed POST over HTTPS to a checked address, with one deadline for everything.
//!
//! Connections are kept and reused per destination (HTTP/1.1 keep-alive). No redirects, no
//! decompression, a capped body. With an egress proxy, connections go through it, to the same checked addresses.

use std::collections::HashMap;
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
use rapport_app::signature::SigningKey;
use rapport_domain::delivery::{
    Attempt, CONNECT_TIMEOUT_SECONDS, Failure, MAX_EXCERPT_BYTES, Outcome, Reason, TOTAL_TIMEOUT_SECONDS,
    Timings,
};
use rapport_domain::destination::{Destination, Host, Refusal};
use rapport_domain::id::EventId;
use rapport_domain::standard_webhook::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use rapport_domain::time::Time;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use crate::certificate::Verifier;
use crate::egress::EgressProxy;
use crate::failure::Broken;
use crate::guard::{Guard, NotDialled, ResolveError};

const AGENT: &str = concat!("Rapport/", env!("CARGO_PKG_VERSION"), " (webhooks)");
/// As many as can be in progress: webhooks that share a host share its connections.
const MAX_IDLE_PER_DESTINATION: usize = 1024;
const MAX_IDLE_AGE: Duration = Duration::from_secs(30);
/// How long an unneeded connection may take to close cleanly.
const MAX_GOODBYE: Duration = Duration::from_secs(1);
/// How often the log says what is wrong with the proxy.
const TELL_EVERY: Duration = Duration::from_mins(1);
/// How much memory a receiver's headers may take.
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

/// The request to send.
pub struct Post<'a> {
    pub destination: &'a Result<Destination, Refusal>,
    pub key: &'a SigningKey,
    pub event: &'static str,
    pub event_id: EventId,
    pub delivery: String,
    pub number: i64,
    pub payload: &'a str,
    pub reason: Reason,
    pub started_at: Time,
    /// The webhook's own headers.
    pub headers: &'a [(String, String)],
}

pub struct Client {
    guard: Arc<Guard>,
    tls: TlsConnector,
    limits: Limits,
    proxy: Option<EgressProxy>,
    /// When the log last said what is wrong with the proxy.
    told: Mutex<Option<Instant>>,
    idle: Mutex<HashMap<String, Vec<Idle>>>,
    tasks: TaskTracker,
}

struct Idle {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    since: Instant,
    lifeline: Lifeline,
}

/// A connection in use.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    reused: bool,
    lifeline: Lifeline,
}

/// A connection ends soon after this is dropped, whatever its receiver does.
type Lifeline = oneshot::Sender<()>;

/// What an attempt has learned so far; kept if the deadline cuts it off.
#[derive(Default)]
struct Progress {
    timings: Timings,
    address: Option<SocketAddr>,
    /// The proxy was reached and asked for the address.
    asked_proxy: bool,
    code: Option<u16>,
    retry_after: Option<HeaderValue>,
    excerpt: Vec<u8>,
    excerpt_cut: bool,
}

/// The roots used to verify receivers: the system's, and those the operator adds.
pub fn tls_config(extra_authorities: &[rustls::pki_types::CertificateDer<'static>]) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "failed to read some system certificates");
    }
    roots.add_parsable_certificates(native.certs);
    let (added, _) = roots.add_parsable_certificates(extra_authorities.iter().cloned());
    if added < extra_authorities.len() {
        tracing::warn!("some extra certificate authorities can't be used");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = Arc::new(roots);
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default versions")
        .with_root_certificates(Arc::clone(&roots))
        .with_no_client_auth();
    match WebPkiServerVerifier::builder_with_provider(roots, provider).build() {
        Ok(verifier) => config.dangerous().set_certificate_verifier(Arc::new(Verifier(verifier))),
        // The existing verifier refuses every receiver, as it should.
        Err(error) => tracing::warn!(%error, "no certificate authorities found; refusing every receiver"),
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

impl Client {
    pub fn new(guard: Arc<Guard>, tls: rustls::ClientConfig, limits: Limits, tasks: TaskTracker) -> Self {
        let tls = TlsConnector::from(Arc::new(tls));
        Self { guard, tls, limits, proxy: None, told: Mutex::default(), idle: Mutex::default(), tasks }
    }

    /// The same client, but with its connections going through this proxy, if there is one.
    #[must_use]
    pub fn through(self, proxy: Option<EgressProxy>) -> Self {
        Self { proxy, ..self }
    }

    /// Makes one attempt, and records whatever happens.
    pub async fn attempt(&self, post: Post<'_>) -> Attempt {
        let started = Instant::now();
        let started_at = post.started_at;
        let mut progress = Progress::default();
        let ended = match tokio::time::timeout(self.limits.total, self.run(&post, &mut progress)).await {
            Ok(ended) => ended,
            Err(_) => Err(Broken::new(Failure::Timeout, self.describe_timeout(&progress))),
        };
        progress.timings.total = micros(started);
        let retry_after = progress.retry_after.and_then(|value| seconds_to_wait(&value, started_at));
        let (outcome, error) = match (ended, progress.code) {
            (Ok(()), Some(code)) => (Outcome::Answered { code, retry_after }, None),
            (Ok(()), None) => (Outcome::Failed(Failure::Protocol), Some("no response came".to_owned())),
            (Err(Broken { failure, error }), Some(code)) => {
                (Outcome::BrokenOff { code, retry_after, failure }, Some(error))
            }
            (Err(Broken { failure, error }), None) => {
                self.tell(failure, &error);
                (Outcome::Failed(failure), Some(error))
            }
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

    /// Logs a fault on our side if it may be the proxy's. It isn't recorded as an attempt, so nobody would see it. Once a
    /// minute is enough: everything that is sent goes through the same proxy.
    fn tell(&self, failure: Failure, error: &str) {
        if failure != Failure::Own || self.proxy.is_none() {
            return;
        }
        let mut told = self.told.lock();
        if told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(error, "webhooks can't be sent through the egress proxy");
        }
    }

    fn describe_timeout(&self, progress: &Progress) -> String {
        let seconds = self.limits.total.as_secs_f32();
        match progress.code {
            Some(_) => format!("the response didn't end within {seconds} s"),
            None => format!("no response within {seconds} s"),
        }
    }

    async fn run(&self, post: &Post<'_>, progress: &mut Progress) -> Result<(), Broken> {
        let destination = post.destination.as_ref().map_err(refused)?;
        let line = self.connect(destination, progress, true).await?;
        let (reused, address) = (line.reused, line.address);
        match self.exchange(post, destination, line, progress).await {
            // The receiver may have closed a kept connection just as it was reused. Nothing came back, so the
            // same bytes are sent once more over a new one.
            Err(_) if reused && progress.code.is_none() => {
                tracing::debug!(%address, "kept connection was closed; reconnecting");
                let line = self.connect(destination, progress, false).await?;
                self.exchange(post, destination, line, progress).await
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
        match tokio::time::timeout(self.limits.connect, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(self.not_connected_in_time(destination, progress)),
        }
    }

    fn not_connected_in_time(&self, destination: &Destination, progress: &Progress) -> Broken {
        let seconds = self.limits.connect.as_secs_f32();
        if let (Some(proxy), Some(address), None) = (&self.proxy, progress.address, progress.timings.connect)
        {
            return proxy.late(address, progress.asked_proxy, seconds);
        }
        let sentence = match (progress.address, progress.timings.connect) {
            (None, _) => format!("{} wasn't resolved within {seconds} s", host_text(destination)),
            (Some(address), None) => {
                format!("{address} didn't accept a connection within {seconds} s; check its firewall")
            }
            (Some(_), Some(_)) => format!("the TLS handshake didn't finish within {seconds} s"),
        };
        Broken::new(Failure::Timeout, sentence)
    }

    async fn connect_within(
        &self,
        destination: &Destination,
        progress: &mut Progress,
        may_reuse: bool,
    ) -> Result<Line, Broken> {
        let started = Instant::now();
        let addresses =
            self.guard.addresses(destination).await.map_err(|reason| not_dialled(reason, destination))?;
        if matches!(destination.host(), Host::Name(_)) {
            progress.timings.dns = Some(micros(started));
        }
        if may_reuse && let Some(line) = self.kept(destination, &addresses) {
            progress.address = Some(line.address);
            return Ok(line);
        }
        // Boxed: most attempts reuse a connection, and would move the memory for a handshake along for nothing.
        Box::pin(self.open(destination, &addresses, progress)).await
    }

    async fn open(
        &self,
        destination: &Destination,
        addresses: &[IpAddr],
        progress: &mut Progress,
    ) -> Result<Line, Broken> {
        let started = Instant::now();
        let (stream, address) = dial(addresses, destination.port(), self.proxy.as_ref(), progress).await?;
        progress.timings.connect = Some(micros(started));
        let started = Instant::now();
        let name = match destination.host() {
            Host::Ip(ip) => ServerName::from(ip),
            Host::Name(name) => ServerName::try_from(name.to_owned())
                .map_err(|_| Broken::new(Failure::Tls, format!("{name} isn't a name that TLS can verify")))?,
        };
        let stream = self.tls.connect(name, stream).await.map_err(|error| Broken::handshake(&error))?;
        progress.timings.tls = Some(micros(started));
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Broken::response(&error))?;
        let (lifeline, let_go) = oneshot::channel();
        self.tasks.spawn(async move {
            // Without this, a receiver that never reads could hold its connection forever.
            let abandoned = async {
                let _ = let_go.await;
                tokio::time::sleep(MAX_GOODBYE).await;
            };
            tokio::select! {
                _ = connection => {}
                () = abandoned => {}
            }
        });
        Ok(Line { sender, address, reused: false, lifeline })
    }

    /// A kept connection to an address that may be dialled now.
    fn kept(&self, destination: &Destination, addresses: &[IpAddr]) -> Option<Line> {
        let mut idle = self.idle.lock();
        let kept = idle.get_mut(destination.authority())?;
        while let Some(Idle { sender, address, since, lifeline }) = kept.pop() {
            let usable = since.elapsed() < MAX_IDLE_AGE && !sender.is_closed() && sender.is_ready();
            if usable && addresses.contains(&address.ip()) {
                return Some(Line { sender, address, reused: true, lifeline });
            }
        }
        None
    }

    fn keep(&self, destination: &Destination, line: Line) {
        let mut idle = self.idle.lock();
        let kept = idle.entry(destination.authority().to_owned()).or_default();
        if kept.len() < MAX_IDLE_PER_DESTINATION {
            let Line { sender, address, lifeline, .. } = line;
            kept.push(Idle { sender, address, since: Instant::now(), lifeline });
        }
    }

    /// Closes kept connections that haven't been used for a while.
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
        line.sender.ready().await.map_err(|error| Broken::response(&error))?;
        let response = line.sender.send_request(request).await.map_err(|error| Broken::response(&error))?;
        progress.timings.first_byte = Some(micros(started));
        progress.code = Some(response.status().as_u16());
        progress.retry_after = response.headers().get(RETRY_AFTER).cloned();
        read_body(response, progress).await?;
        // A connection with unread data isn't reused.
        if !progress.excerpt_cut {
            self.keep(destination, line);
        }
        Ok(())
    }
}

fn request(post: &Post, destination: &Destination) -> Result<Request<Full<Bytes>>, Broken> {
    let own = |error: String| Broken::new(Failure::Own, error);
    let header = |text: &str| HeaderValue::from_str(text).map_err(|error| own(error.to_string()));
    // A text that was made for a header becomes one without a copy.
    let made = |text: String| HeaderValue::try_from(text).map_err(|error| own(error.to_string()));
    let (key, body, timestamp) = (post.key, post.payload.as_bytes(), post.started_at.unix_seconds());
    let mut request = Request::post(destination.path_and_query())
        .header(HOST, header(destination.authority())?)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(USER_AGENT, HeaderValue::from_static(AGENT))
        .header("x-service-signature", made(key.sign(body).to_string())?)
        .header("x-service-event", HeaderValue::from_static(post.event))
        .header("x-service-delivery", header(&post.delivery)?)
        .header("x-service-attempt", HeaderValue::from(post.number))
        .header(ID_HEADER, made(post.event_id.to_string())?)
        .header(TIMESTAMP_HEADER, HeaderValue::from(timestamp))
        .header(SIGNATURE_HEADER, made(key.sign_standard(post.event_id, timestamp, body).to_string())?);
    for (name, value) in post.headers {
        // An error of the library would say the value.
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| own(format!("the value of the header {name} can't be sent")))?;
        value.set_sensitive(true);
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body)));
    request.map_err(|error| own(error.to_string()))
}

async fn dial(
    addresses: &[IpAddr],
    port: u16,
    proxy: Option<&EgressProxy>,
    progress: &mut Progress,
) -> Result<(TcpStream, SocketAddr), Broken> {
    let mut last = Broken::new(Failure::Connect, "the host has no address to connect to");
    for ip in addresses {
        let address = SocketAddr::new(*ip, port);
        progress.address = Some(address);
        let connected = match proxy {
            Some(proxy) => through(proxy, address, progress).await,
            None => TcpStream::connect(address).await.map_err(|error| Broken::connecting(address, &error)),
        };
        match connected {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok((stream, address));
            }
            Err(broken) => last = broken,
        }
        if last.failure == Failure::Own {
            break;
        }
    }
    Err(last)
}

/// A connection to the address through the proxy.
async fn through(
    proxy: &EgressProxy,
    address: SocketAddr,
    progress: &mut Progress,
) -> Result<TcpStream, Broken> {
    progress.asked_proxy = false;
    let mut stream = proxy.dial().await?;
    progress.asked_proxy = true;
    proxy.open(&mut stream, address).await?;
    Ok(stream)
}

fn refused(refusal: &Refusal) -> Broken {
    Broken::new(Failure::Refused, refusal.to_string())
}

fn not_dialled(reason: NotDialled, destination: &Destination) -> Broken {
    match reason {
        NotDialled::Refused(refusal) => refused(&refusal),
        NotDialled::Unresolved(ResolveError::NotFound(_)) => {
            let name = host_text(destination);
            Broken::new(Failure::Dns, format!("{name} has no address; check the name and its DNS records"))
        }
        NotDialled::Unresolved(ResolveError::Own(text)) => Broken::new(Failure::Own, text),
    }
}

fn host_text(destination: &Destination) -> String {
    match destination.host() {
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.to_owned(),
    }
}

/// `Retry-After` is seconds or a date (RFC 9110).
fn seconds_to_wait(retry_after: &HeaderValue, now: Time) -> Option<i64> {
    let text = retry_after.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large to parse exceeds the limit anyway.
        return Some(text.parse().unwrap_or(i64::MAX));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    let micros = Time::from_timestamp(date.timestamp()).micros_since(now);
    (micros > 0).then(|| micros / 1_000_000 + i64::from(micros % 1_000_000 > 0))
}

async fn read_body(response: Response<Incoming>, progress: &mut Progress) -> Result<(), Broken> {
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Broken::body(&error))?;
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
