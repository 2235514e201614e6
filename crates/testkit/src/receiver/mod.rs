//! A real HTTPS server on loopback for webhook tests: records what arrives and answers as it is told, badly if
//! asked to. It knows nothing about signatures or event kinds; tests judge what it recorded.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use self::behaviour::respond;
use self::certificates::Authority;
use self::faulty::{Fault, FaultyStream};

pub use self::behaviour::Behaviour;
pub use self::certificates::{Identity, PemFiles};
pub use self::hostile::{Hostile, Opening, Step};

mod behaviour;
pub(crate) mod certificates;
mod faulty;
mod hostile;
#[cfg(test)]
mod tests;

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
    /// The value of a header that occurs exactly once and is text.
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

/// A running receiver, on one thread whatever its load. Dropping it closes its port and connections.
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
    /// A receiver that answers 200. All receivers of a process have certificates from the same authority.
    pub fn start() -> Self {
        Self::start_with(Authority::shared())
    }

    /// A receiver whose certificate comes from its own authority, which nobody trusts.
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

    /// Sets the answer to requests that have none from a path or the script.
    pub fn answer(&self, behaviour: Behaviour) {
        self.shared.state().default = behaviour;
    }

    /// Sets the answers to the next requests, one after another, except those whose path has its own answer.
    pub fn script(&self, behaviours: Vec<Behaviour>) {
        self.shared.state().script.extend(behaviours);
    }

    /// Sets the answer to every request to this path, whatever its query, from now on.
    pub fn answer_path(&self, path: &str, behaviour: Behaviour) {
        self.shared.state().by_path.insert(path.to_owned(), behaviour);
    }

    /// Everything received so far, in the order of arrival.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.state().requests.clone()
    }

    /// The same, and forgets it: for runs that receive more than fits into memory.
    pub fn take(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut self.shared.state().requests)
    }

    /// Waits until at least `count` requests have arrived. Blocks the thread, so do not call it in a runtime whose
    /// only thread has to send them.
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

/// Shared by the receiver's thread and its owner.
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
            // Most likely out of descriptors; the open connections will free some.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one connection. Its errors are ignored: the tests look at what the client made of them.
async fn serve(socket: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let Ok(tls) = acceptor.accept(socket).await else { return };
    shared.connections.fetch_add(1, Ordering::SeqCst);
    let fault = Arc::new(Mutex::new(Fault::None));
    let stream = FaultyStream { tls, fault: Arc::clone(&fault) };
    let service = service_fn(move |request| respond(request, Arc::clone(&shared), Arc::clone(&fault)));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
