//! Receivers that no HTTP library would ever be: they write exactly the bytes they are told to, with or without TLS.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificates::Identity;

/// How a connection begins.
#[derive(Clone, Copy, Debug)]
pub enum Opening {
    /// Without TLS.
    Plain,
    Tls(Identity),
}

/// What a hostile receiver does on a connection, one step after another. After the last one it shuts the connection
/// down properly.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reads a request to its end.
    ReadRequest,
    /// Reads this many bytes, and no more.
    Read(usize),
    Send(Vec<u8>),
    /// Writes past TLS, straight to the socket.
    Underneath(Vec<u8>),
    Pause(Duration),
    /// Writes one byte after another, with a pause before each.
    Drip {
        bytes: Vec<u8>,
        every: Duration,
    },
    /// Writes the same over and over, until the client leaves.
    Flood(Vec<u8>),
    /// Silence until the client leaves.
    Hold,
    /// Silence forever, without reading a byte.
    Ignore,
    /// Closes the connection without shutting TLS down.
    Cut,
    Reset,
}

impl Step {
    pub fn send(text: &str) -> Self {
        Self::Send(text.as_bytes().to_vec())
    }
}

/// A hostile receiver. All of them share a thread; dropping one closes its port and connections.
#[derive(Debug)]
pub struct Hostile {
    address: SocketAddr,
    seen: Arc<Seen>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    sent: AtomicU64,
    requests: AtomicUsize,
}

impl Hostile {
    /// Every connection follows the same steps.
    pub fn start(opening: Opening, steps: Vec<Step>) -> Self {
        Self::start_each(opening, vec![steps])
    }

    /// The first connection follows the first script, and so on; the last script is for all further connections.
    pub fn start_each(opening: Opening, scripts: Vec<Vec<Step>>) -> Self {
        assert!(!scripts.is_empty(), "a receiver without steps");
        let socket = loopback_socket();
        // A small window, so that a sender blocks soon if nothing is read.
        socket.set_recv_buffer_size(4096).expect("a receive buffer");
        Self::run(socket, move |listener, seen| accept(listener, opening, scripts, seen))
    }

    /// Connections are refused. The port is held, so that nobody else gets it.
    pub fn refusing() -> Self {
        let socket = loopback_socket();
        let address = socket.local_addr().expect("its address");
        let task = runtime().spawn(async move {
            std::future::pending::<()>().await;
            drop(socket);
        });
        Self { address, seen: Arc::default(), task: task.abort_handle() }
    }

    /// Connections are neither accepted nor refused: the queue of waiting ones is full.
    pub fn deaf() -> Self {
        const MORE_THAN_WAIT: usize = 4;
        let socket = loopback_socket();
        let address = socket.local_addr().expect("its address");
        let (ready, is_ready) = std::sync::mpsc::channel();
        let task = runtime().spawn(async move {
            let listener = socket.listen(1).expect("listening");
            let mut waiting = JoinSet::new();
            for _ in 0..MORE_THAN_WAIT {
                waiting.spawn(TcpStream::connect(address));
            }
            // The queue holds at least one; the others wait for a place in it that never becomes free.
            let first = waiting.join_next().await;
            sleep(Duration::from_millis(50)).await;
            let _ = ready.send(());
            std::future::pending::<()>().await;
            drop((listener, first));
        });
        is_ready.recv().expect("a full queue");
        Self { address, seen: Arc::default(), task: task.abort_handle() }
    }

    fn run<F: Future<Output = ()> + Send + 'static>(
        socket: TcpSocket,
        serve: impl FnOnce(TcpListener, Arc<Seen>) -> F + Send + 'static,
    ) -> Self {
        let seen = Arc::new(Seen::default());
        let address = socket.local_addr().expect("its address");
        let listener = {
            let _inside = runtime().enter();
            socket.listen(64).expect("listening")
        };
        let task = runtime().spawn(serve(listener, Arc::clone(&seen)));
        Self { address, seen, task: task.abort_handle() }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// How many connections were made so far, TLS or not.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many of them the client has not ended.
    pub fn open(&self) -> usize {
        self.seen.open.load(Ordering::SeqCst)
    }

    /// How many bytes were sent, before encryption.
    pub fn bytes_sent(&self) -> u64 {
        self.seen.sent.load(Ordering::SeqCst)
    }

    /// How many requests were read to their end.
    pub fn requests(&self) -> usize {
        self.seen.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let build = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    RUNTIME.get_or_init(|| build().expect("a runtime for hostile receivers"))
}

fn loopback_socket() -> TcpSocket {
    let _inside = runtime().enter();
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free loopback port");
    socket
}

async fn accept(listener: TcpListener, opening: Opening, scripts: Vec<Vec<Step>>, seen: Arc<Seen>) {
    let acceptor = match opening {
        Opening::Plain => None,
        Opening::Tls(identity) => Some(TlsAcceptor::from(Arc::new(identity.server_config()))),
    };
    // Dropped with this task, and so is every connection.
    let mut connections = JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            // Most likely out of descriptors; the open connections will free some.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let number = seen.connections.fetch_add(1, Ordering::SeqCst);
        let steps = scripts.get(number).or(scripts.last()).cloned().unwrap_or_default();
        connections.spawn(serve(socket, acceptor.clone(), steps, Arc::clone(&seen)));
    }
}

/// Serves one connection. Errors are ignored: they are what the client made of it.
async fn serve(socket: TcpStream, acceptor: Option<TlsAcceptor>, steps: Vec<Step>, seen: Arc<Seen>) {
    let _open = Open::new(&seen);
    let _ = socket.set_nodelay(true);
    let mut line = match acceptor {
        None => Line::Plain(socket),
        Some(acceptor) => match acceptor.accept(socket).await {
            Ok(tls) => Line::Tls(Box::new(tls)),
            Err(_) => return,
        },
    };
    for step in steps {
        if line.follow(step, &seen).await.is_err() {
            return;
        }
    }
    let _ = line.shutdown().await;
    line.until_client_goes().await;
}

/// Counts a connection for as long as it lives.
struct Open<'a>(&'a Seen);

impl<'a> Open<'a> {
    fn new(seen: &'a Seen) -> Self {
        seen.open.fetch_add(1, Ordering::SeqCst);
        Self(seen)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

enum Line {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Line {
    /// An error ends the connection.
    async fn follow(&mut self, step: Step, seen: &Seen) -> io::Result<()> {
        match step {
            Step::ReadRequest => {
                self.read_request().await?;
                seen.requests.fetch_add(1, Ordering::SeqCst);
            }
            Step::Read(count) => {
                self.read_exact(&mut vec![0; count]).await?;
            }
            Step::Send(bytes) => self.send(&bytes, seen).await?,
            Step::Underneath(bytes) => self.tcp().write_all(&bytes).await?,
            Step::Pause(pause) => sleep(pause).await,
            Step::Drip { bytes, every } => {
                for byte in bytes {
                    sleep(every).await;
                    self.send(&[byte], seen).await?;
                }
            }
            Step::Flood(bytes) => loop {
                self.send(&bytes, seen).await?;
            },
            Step::Hold => {
                self.until_client_goes().await;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Step::Ignore => std::future::pending().await,
            Step::Cut => {
                self.tcp().shutdown().await?;
                self.until_client_goes().await;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Step::Reset => {
                // Without lingering, closing the socket sends a reset instead of a proper end.
                self.tcp().set_zero_linger()?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8], seen: &Seen) -> io::Result<()> {
        self.write_all(bytes).await?;
        self.flush().await?;
        seen.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        Ok(())
    }

    async fn read_request(&mut self) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        self.read_exact(&mut vec![0; length]).await?;
        Ok(())
    }

    async fn until_client_goes(&mut self) {
        let mut unread = [0; 4096];
        while self.read(&mut unread).await.is_ok_and(|count| count > 0) {}
    }

    fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_mut().0,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Self::Tls(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
