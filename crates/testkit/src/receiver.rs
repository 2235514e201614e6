//! A real HTTPS server on loopback for webhook tests: records what arrives and answers as it is told, badly
//! if need be. It knows nothing of signatures or event kinds; tests judge what it recorded.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::Gate;

/// The names and addresses the receivers' certificate is for.
const CERTIFIED_NAMES: [&str; 5] = ["127.0.0.1", "::1", "localhost", "receiver.test", "*.receiver.test"];
/// Ends inside the first header line after the status line.
const HALF_HEADER_BYTES: usize = 20;
/// Ends inside the body: the header block is far shorter, the body far longer.
const RESET_AFTER_BYTES: usize = 4096;
const CHUNK_BYTES: usize = 16 * 1024;
const BOMB_MEMBER_BYTES: usize = 16 * 1024 * 1024;
/// Four gibibytes once unpacked, four mebibytes on the wire.
const BOMB_MEMBERS: u64 = 256;

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// This code and an empty body.
    Status(u16),
    StatusWith {
        code: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// Reads the request and never answers.
    Stall,
    /// 200 and a body that never ends, one byte at a time.
    SlowBody {
        byte_every: Duration,
    },
    /// 200 and a body that never ends, as fast as it is read.
    EndlessBody,
    /// 200 and a gzip body a thousand times larger than it looks.
    GzipBomb,
    /// The beginning of a response header; then silence, with the connection kept open.
    HalfHeader,
    /// 200 and the beginning of a body; then the connection is reset.
    Reset,
    Delay(Duration, Box<Behaviour>),
    /// As said once the test opens the gate.
    Until(Gate, Box<Behaviour>),
}

/// A request that arrived in full.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub method: String,
    /// With the query, as sent.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl ReceivedRequest {
    /// The value of a header that is there once and is text.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().expect("a header of plain text"),
            (None, _) => panic!("the request has no header {name}"),
            (Some(_), Some(_)) => panic!("the request has the header {name} more than once"),
        }
    }
}

/// A running receiver, one thread whatever its load. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    authority_pem: String,
    authority_file: NamedTempFile,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// A receiver that answers 200. All receivers of a process have certificates of the same authority.
    pub fn start() -> Self {
        static AUTHORITY: OnceLock<Authority> = OnceLock::new();
        Self::start_with(AUTHORITY.get_or_init(Authority::create))
    }

    /// A receiver whose certificate comes from an authority of its own, which nobody trusts.
    pub fn start_untrusted() -> Self {
        Self::start_with(&Authority::create())
    }

    fn start_with(authority: &Authority) -> Self {
        let authority_file = NamedTempFile::new().expect("a file for the receiver's authority");
        std::fs::write(&authority_file, &authority.pem).expect("writing the receiver's authority");
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = oneshot::channel();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let address = listener.local_addr().expect("the receiver's address");
        let acceptor = TlsAcceptor::from(Arc::clone(&authority.server_config));
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("receiver".to_owned())
            .spawn(move || run(listener, acceptor, for_thread, stopped))
            .expect("a thread for the receiver");
        Self {
            address,
            authority_pem: authority.pem.clone(),
            authority_file,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// The certificate to trust, as PEM text.
    pub fn ca_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The certificate to trust, as a file that lives as long as the receiver.
    pub fn ca_file(&self) -> &Path {
        self.authority_file.path()
    }

    /// What requests get that neither a path nor the script claims.
    pub fn answer(&self, behaviour: Behaviour) {
        self.shared.state().default = behaviour;
    }

    /// What the next requests get, one after the other, except those whose path has an answer of its own.
    pub fn script(&self, behaviours: Vec<Behaviour>) {
        self.shared.state().script.extend(behaviours);
    }

    /// What every request to this path (without its query) gets from now on.
    pub fn answer_path(&self, path: &str, behaviour: Behaviour) {
        self.shared.state().by_path.insert(path.to_owned(), behaviour);
    }

    /// Everything received so far, in the order of arrival.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.state().requests.clone()
    }

    /// Waits until at least `count` requests have arrived. Blocks the thread: not for inside a runtime whose
    /// only thread is to send them.
    #[track_caller]
    pub fn wait_for(&self, count: usize, timeout: Duration) -> Vec<ReceivedRequest> {
        let (state, waited) = self
            .shared
            .arrived
            .wait_timeout_while(self.shared.state(), timeout, |state| state.requests.len() < count)
            .unwrap_or_else(PoisonError::into_inner);
        let requests = state.requests.clone();
        drop(state);
        if waited.timed_out() {
            let lines: Vec<_> = requests.iter().map(|it| format!("  {} {}\n", it.method, it.path)).collect();
            panic!(
                "expected {count} requests within {timeout:?}, {} arrived over {} connections:\n{}",
                requests.len(),
                self.connections(),
                lines.concat()
            );
        }
        requests
    }

    /// How many TLS connections were set up so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A certificate authority and what it issued to the receivers.
struct Authority {
    pem: String,
    server_config: Arc<ServerConfig>,
}

impl Authority {
    fn create() -> Self {
        let authority_key = KeyPair::generate().expect("a key for the authority");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Rapport test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&authority_key).expect("the authority's certificate");
        let issuer = rcgen::Issuer::new(params, authority_key);

        let server_key = KeyPair::generate().expect("a key for the receivers");
        let mut params = CertificateParams::new(CERTIFIED_NAMES.map(str::to_owned)).expect("valid names");
        params.distinguished_name.push(DnType::CommonName, "Rapport test receiver");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&server_key, &issuer).expect("the receivers' certificate");
        let server_config = server_config(certificate.der().clone(), server_key.serialize_der());
        Self { pem: authority.pem(), server_config: Arc::new(server_config) }
    }
}

fn server_config(certificate: CertificateDer<'static>, key: Vec<u8>) -> ServerConfig {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions of the provider")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate that fits its key");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// What the receiver's thread and its owner both hold.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
    connections: AtomicUsize,
}

#[derive(Debug)]
struct State {
    requests: Vec<ReceivedRequest>,
    default: Behaviour,
    script: VecDeque<Behaviour>,
    by_path: HashMap<String, Behaviour>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            requests: Vec::new(),
            default: Behaviour::Status(200),
            script: VecDeque::new(),
            by_path: HashMap::new(),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request and chooses its answer in one step, so that the script follows the order of arrival.
    fn record(&self, request: ReceivedRequest) -> Behaviour {
        let mut state = self.state();
        let path = request.path.split('?').next().unwrap_or_default();
        let by_path = state.by_path.get(path).cloned();
        let behaviour = by_path.or_else(|| state.script.pop_front()).unwrap_or_else(|| state.default.clone());
        state.requests.push(request);
        self.arrived.notify_all();
        behaviour
    }
}

/// The receiver's thread: everything on it ends with its runtime.
fn run(
    listener: std::net::TcpListener,
    acceptor: TlsAcceptor,
    shared: Arc<Shared>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a listener that does not block");
        let listener = TcpListener::from_std(listener).expect("a listener in the runtime");
        tokio::select! {
            () = accept(listener, acceptor, shared) => {}
            _ = stopped => {}
        }
    });
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                tokio::spawn(serve(socket, acceptor.clone(), Arc::clone(&shared)));
            }
            // Out of descriptors, most likely: the connections in hand will free some.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// One connection. Its errors are the client's business: the tests look at what the client made of them.
async fn serve(socket: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let Ok(tls) = acceptor.accept(socket).await else { return };
    shared.connections.fetch_add(1, Ordering::SeqCst);
    let fault = Arc::new(Mutex::new(Fault::None));
    let stream = FaultyStream { tls, fault: Arc::clone(&fault) };
    let service = service_fn(move |request| respond(request, Arc::clone(&shared), Arc::clone(&fault)));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    fault: Arc<Mutex<Fault>>,
) -> Result<Response<ReplyBody>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let method = parts.method.to_string();
    let request = ReceivedRequest { method, path, headers: parts.headers, body, at: Instant::now() };
    let mut behaviour = shared.record(request);
    loop {
        behaviour = match behaviour {
            Behaviour::Delay(duration, then) => {
                sleep(duration).await;
                *then
            }
            Behaviour::Until(gate, then) => {
                gate.opened().await;
                *then
            }
            ready => {
                behaviour = ready;
                break;
            }
        };
    }
    Ok(match behaviour {
        Behaviour::Status(code) => response(code, ReplyBody::empty()),
        Behaviour::StatusWith { code, headers, body } => response_with(code, headers, body),
        Behaviour::SlowBody { byte_every } => response(200, ReplyBody::slow(byte_every)),
        Behaviour::EndlessBody => response(200, ReplyBody::repeat(zeros(), u64::MAX)),
        Behaviour::GzipBomb => {
            let mut bomb = response(200, ReplyBody::repeat(bomb_member(), BOMB_MEMBERS));
            bomb.headers_mut().insert(CONTENT_ENCODING, "gzip".parse().expect("a header value"));
            bomb
        }
        Behaviour::HalfHeader => {
            set_fault(&fault, Fault::SilenceAfter(HALF_HEADER_BYTES));
            response(200, ReplyBody::empty())
        }
        Behaviour::Reset => {
            set_fault(&fault, Fault::ResetAfter(RESET_AFTER_BYTES));
            response(200, ReplyBody::repeat(zeros(), 2))
        }
        Behaviour::Stall | Behaviour::Delay(..) | Behaviour::Until(..) => pending().await,
    })
}

fn response(code: u16, body: ReplyBody) -> Response<ReplyBody> {
    Response::builder().status(code).body(body).expect("a valid status code")
}

fn response_with(code: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Response<ReplyBody> {
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(ReplyBody::repeat(body.into(), 1)).expect("a valid status code and headers")
}

fn zeros() -> Bytes {
    static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];
    Bytes::from_static(&ZEROS)
}

/// One gzip member; a gzip body may hold any number of them, so a large bomb is a small one repeated.
fn bomb_member() -> Bytes {
    static MEMBER: OnceLock<Bytes> = OnceLock::new();
    let make = || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        io::copy(&mut io::Read::take(io::repeat(0), BOMB_MEMBER_BYTES as u64), &mut encoder)
            .expect("compressing into memory");
        encoder.finish().expect("compressing into memory").into()
    };
    MEMBER.get_or_init(make).clone()
}

/// The same chunk over and over, at once or with a pause before each.
struct ReplyBody {
    chunk: Bytes,
    chunks_left: u64,
    pause: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl ReplyBody {
    fn empty() -> Self {
        Self::repeat(Bytes::new(), 0)
    }

    fn repeat(chunk: Bytes, times: u64) -> Self {
        Self { chunk, chunks_left: times, pause: None }
    }

    fn slow(byte_every: Duration) -> Self {
        let pause = Some((byte_every, Box::pin(sleep(byte_every))));
        Self { chunk: Bytes::from_static(b"."), chunks_left: u64::MAX, pause }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.chunks_left == 0 {
            return Poll::Ready(None);
        }
        if let Some((byte_every, pause)) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            *pause = Box::pin(sleep(*byte_every));
        }
        self.chunks_left -= 1;
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks_left == 0
    }

    fn size_hint(&self) -> SizeHint {
        match (self.chunk.len() as u64).checked_mul(self.chunks_left) {
            // Endless by any client's measure, so without a length: it goes out in chunks.
            None => SizeHint::default(),
            Some(_) if self.pause.is_some() => SizeHint::default(),
            Some(length) => SizeHint::with_exact(length),
        }
    }
}

/// What goes wrong with the bytes hyper writes next. Hyper itself only ever writes well-formed responses.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// Lets this many bytes through and swallows the rest.
    SilenceAfter(usize),
    /// Lets this many bytes through and resets the connection.
    ResetAfter(usize),
}

fn set_fault(shared: &Mutex<Fault>, fault: Fault) {
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = fault;
}

struct FaultyStream {
    tls: TlsStream<TcpStream>,
    fault: Arc<Mutex<Fault>>,
}

impl AsyncWrite for FaultyStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut fault = this.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = match &mut *fault {
            Fault::None => return Pin::new(&mut this.tls).poll_write(context, bytes),
            Fault::SilenceAfter(0) => return Poll::Ready(Ok(bytes.len())),
            Fault::ResetAfter(0) => {
                ready!(Pin::new(&mut this.tls).poll_flush(context))?;
                // Without lingering, closing the socket sends a reset instead of a proper end.
                this.tls.get_ref().0.set_zero_linger()?;
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            Fault::SilenceAfter(allowed) | Fault::ResetAfter(allowed) => allowed,
        };
        let part = &bytes[..bytes.len().min(*allowed)];
        let written = ready!(Pin::new(&mut this.tls).poll_write(context, part))?;
        *allowed -= written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_shutdown(context)
    }
}

impl AsyncRead for FaultyStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};

    use rustls::pki_types::pem::PemObject as _;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    /// How long a client listens before it calls the receiver silent.
    const SILENCE: Duration = Duration::from_millis(200);

    type Connection = StreamOwned<ClientConnection, std::net::TcpStream>;

    fn connect_as(receiver: &Receiver, ca_pem: &str, name: &str) -> io::Result<Connection> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).expect("a PEM certificate"))
            .expect("a CA");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = name.to_owned().try_into().expect("a server name");
        let mut session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let mut socket = std::net::TcpStream::connect(receiver.address()).expect("connecting");
        socket.set_read_timeout(Some(LONG)).expect("a read timeout");
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(StreamOwned::new(session, socket))
    }

    fn connect(receiver: &Receiver) -> Connection {
        connect_as(receiver, receiver.ca_pem(), "127.0.0.1").expect("a trusted connection")
    }

    fn post(connection: &mut Connection, path: &str, body: &str) {
        let length = body.len();
        write!(
            connection,
            "POST {path} HTTP/1.1\r\nhost: test\r\nx-test: 7\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("sending a request");
    }

    /// The header block of a response.
    fn read_header(connection: &mut Connection) -> String {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            connection.read_exact(&mut byte).expect("reading a response header");
            header.push(byte[0]);
        }
        String::from_utf8(header).expect("a header of plain text")
    }

    /// Reads until nothing comes for a while, and returns what came and how it ended.
    fn read_until_silent(connection: &mut Connection) -> (Vec<u8>, io::Result<usize>) {
        connection.sock.set_read_timeout(Some(SILENCE)).expect("a read timeout");
        let mut bytes_read = Vec::new();
        let ended = connection.read_to_end(&mut bytes_read);
        (bytes_read, ended)
    }

    fn assert_silent(ended: io::Result<usize>) {
        let error = ended.expect_err("the connection was closed instead of kept open");
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    }

    #[test]
    fn answers_over_a_verified_connection_and_records_the_request() {
        let receiver = Receiver::start();
        let ca_pem = std::fs::read_to_string(receiver.ca_file()).expect("reading the CA file");
        let mut connection = connect_as(&receiver, &ca_pem, "127.0.0.1").expect("a trusted connection");
        for body in ["one", "two"] {
            post(&mut connection, "/hook?a=1", body);
            assert!(read_header(&mut connection).starts_with("HTTP/1.1 200 "));
        }
        let requests = receiver.wait_for(2, LONG);
        let seen: Vec<_> =
            requests.iter().map(|it| (it.method.as_str(), it.path.as_str(), &it.body[..])).collect();
        assert_eq!(seen, [("POST", "/hook?a=1", &b"one"[..]), ("POST", "/hook?a=1", b"two")]);
        assert_eq!(requests[0].header("X-Test"), "7");
        assert_eq!(receiver.connections(), 1);
    }

    #[test]
    fn the_certificate_is_for_its_names_and_of_its_authority_only() {
        let receiver = Receiver::start();
        for name in ["::1", "localhost", "one.receiver.test"] {
            connect_as(&receiver, receiver.ca_pem(), name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(connect_as(&receiver, receiver.ca_pem(), "other.test").is_err());
        let untrusted = Receiver::start_untrusted();
        assert!(connect_as(&untrusted, receiver.ca_pem(), "localhost").is_err());
        assert!(connect_as(&untrusted, untrusted.ca_pem(), "localhost").is_ok());
    }

    #[test]
    fn a_path_goes_before_the_script_and_the_script_before_the_default() {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(503));
        receiver.answer_path("/gone", Behaviour::Status(410));
        let headers = vec![("retry-after".to_owned(), "9".to_owned())];
        receiver.script(vec![
            Behaviour::StatusWith { code: 429, headers, body: b"slower".to_vec() },
            Behaviour::Delay(Duration::from_millis(1), Box::new(Behaviour::Status(204))),
        ]);
        let mut connection = connect(&receiver);
        let mut answer_to = |path| {
            post(&mut connection, path, "");
            let header = read_header(&mut connection);
            if header.contains("content-length: 6") {
                let mut body = [0; 6];
                connection.read_exact(&mut body).expect("reading the body");
                assert_eq!(&body, b"slower");
                assert!(header.contains("retry-after: 9"), "{header}");
            }
            header[9..12].to_owned()
        };
        let answers = ["/gone?now", "/a", "/a", "/a", "/gone"].map(&mut answer_to);
        assert_eq!(answers, ["410", "429", "204", "503", "410"]);
    }

    #[test]
    fn stall_answers_nothing_and_keeps_the_connection() {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Stall);
        let mut connection = connect(&receiver);
        post(&mut connection, "/", "x");
        receiver.wait_for(1, LONG);
        let (bytes_read, ended) = read_until_silent(&mut connection);
        assert_eq!(bytes_read, b"");
        assert_silent(ended);
    }

    #[test]
    fn half_header_sends_a_piece_and_keeps_the_connection() {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::HalfHeader);
        let mut connection = connect(&receiver);
        post(&mut connection, "/", "x");
        receiver.wait_for(1, LONG);
        let (bytes_read, ended) = read_until_silent(&mut connection);
        assert_eq!(bytes_read.len(), HALF_HEADER_BYTES);
        assert!(bytes_read.starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_silent(ended);
    }

    #[test]
    fn reset_breaks_off_inside_the_body() {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Reset);
        let mut connection = connect(&receiver);
        post(&mut connection, "/", "x");
        let mut bytes_read = Vec::new();
        let error = connection.read_to_end(&mut bytes_read).expect_err("a reset, not an end");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        assert!(bytes_read.len() <= RESET_AFTER_BYTES);
        // The receiver itself goes on.
        receiver.answer(Behaviour::Status(200));
        let mut connection = connect(&receiver);
        post(&mut connection, "/", "x");
        assert!(read_header(&mut connection).starts_with("HTTP/1.1 200 "));
    }

    #[test]
    fn slow_and_endless_bodies_keep_coming() {
        let receiver = Receiver::start();
        receiver.answer_path("/slow", Behaviour::SlowBody { byte_every: Duration::from_millis(1) });
        receiver.answer_path("/endless", Behaviour::EndlessBody);
        for (path, enough) in [("/slow", 20), ("/endless", 10 * 1024 * 1024)] {
            let mut connection = connect(&receiver);
            post(&mut connection, path, "x");
            let header = read_header(&mut connection);
            assert!(header.contains("transfer-encoding: chunked"), "{header}");
            let bytes_read = io::copy(&mut (&mut connection).take(enough), &mut io::sink()).expect("a body");
            assert_eq!(bytes_read, enough, "{path}");
        }
    }

    #[test]
    fn the_gzip_bomb_is_gzip_and_large() {
        let receiver = Receiver::start();
        receiver.answer(Behaviour::GzipBomb);
        let mut connection = connect(&receiver);
        post(&mut connection, "/", "x");
        let header = read_header(&mut connection);
        assert!(header.contains("content-encoding: gzip"), "{header}");
        let enough = 3 * BOMB_MEMBER_BYTES as u64;
        let mut unpacked = flate2::read::MultiGzDecoder::new(connection).take(enough);
        assert_eq!(io::copy(&mut unpacked, &mut io::sink()).expect("unpacking"), enough);
    }

    #[test]
    #[should_panic(
        expected = "expected 2 requests within 1ms, 1 arrived over 1 connections:\n  POST /only\n"
    )]
    fn waiting_in_vain_says_what_arrived() {
        let receiver = Receiver::start();
        let mut connection = connect(&receiver);
        post(&mut connection, "/only", "x");
        receiver.wait_for(1, LONG);
        receiver.wait_for(2, Duration::from_millis(1));
    }

    #[test]
    fn dropping_the_receiver_closes_its_port() {
        let receiver = Receiver::start();
        let address = receiver.address();
        let _open = connect(&receiver);
        drop(receiver);
        let refused = std::net::TcpStream::connect(address).expect_err("the port is still open");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
}
