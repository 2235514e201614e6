//! A TCP proxy in front of a PostgreSQL server that breaks connections on request: cut around a COMMIT, silent, or
//! refused. It reads only the framing of the wire protocol. It passes TLS on unread: such connections can go silent or be
//! refused, but not be cut around a COMMIT.

mod pump;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A running proxy. Dropping it closes its port and its connections.
#[derive(Debug)]
pub struct PostgresProxy {
    url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl PostgresProxy {
    /// Starts a proxy for the server of this database URL, without a fault.
    pub fn start(database: &str) -> Self {
        let server = address_in(database);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let address = listener.local_addr().expect("the proxy's address");
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let upstream: SocketAddr = server.parse().expect("the server's address and port");
        let acceptor = thread::Builder::new()
            .name("postgres-proxy".to_owned())
            .spawn(move || accept(&listener, upstream, &for_thread))
            .expect("a thread for the proxy");
        Self {
            url: database.replacen(server, &address.to_string(), 1),
            address,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// The same database, through this proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Cuts every nth connection that commits, after the server has committed and before the client hears of it.
    /// Commits of transactions that were begun `READ ONLY` do not count.
    pub fn cut_after_commit(&self, every_nth: usize) {
        self.set(Fault::CutAfterCommit { every_nth });
    }

    /// Cuts every nth connection that sends COMMIT, instead of passing the COMMIT on. The server rolls back. Again,
    /// `READ ONLY` transactions do not count.
    pub fn cut_before_commit(&self, every_nth: usize) {
        self.set(Fault::CutBeforeCommit { every_nth });
    }

    /// Keeps the open connections open, but lets nothing pass in either direction ever again, as if a firewall had
    /// forgotten them. New connections work.
    pub fn silence_open(&self) {
        for connection in self.shared.connections().iter() {
            connection.silent.store(true, Ordering::SeqCst);
        }
    }

    /// The same; and until [`heal`](Self::heal), new connections are accepted but silent from the start.
    pub fn silence(&self) {
        // In this order: a connection made in between is silent either way.
        self.set(Fault::SilentFromStart);
        self.silence_open();
    }

    /// Cuts all connections, and closes new ones immediately until [`heal`](Self::heal).
    pub fn refuse(&self) {
        self.set(Fault::Refuse);
        self.cut_all();
    }

    /// Cuts all open connections, silent ones too. New ones work.
    pub fn cut_all(&self) {
        let connections = std::mem::take(&mut *self.shared.connections());
        for connection in connections {
            self.shared.cut(&connection);
        }
    }

    /// Ends the fault. Silent connections stay silent.
    pub fn heal(&self) {
        self.set(Fault::None);
    }

    /// How many connections this proxy has cut so far.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many connections are open, silent ones included.
    pub fn open_connections(&self) -> usize {
        self.shared.connections().len()
    }

    fn set(&self, fault: Fault) {
        self.shared.commits.store(0, Ordering::SeqCst);
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees that it is over.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
        self.cut_all();
    }
}

/// `127.0.0.1:5432` of `postgres://user@127.0.0.1:5432/name`.
fn address_in(database: &str) -> &str {
    let (_, rest) = database.split_once("://").expect("a database URL");
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

#[derive(Clone, Copy, Debug, Default)]
enum Fault {
    #[default]
    None,
    CutAfterCommit {
        every_nth: usize,
    },
    CutBeforeCommit {
        every_nth: usize,
    },
    SilentFromStart,
    Refuse,
}

#[derive(Debug, Default)]
struct Shared {
    fault: Mutex<Fault>,
    connections: Mutex<Vec<Arc<Connection>>>,
    /// Commits since the fault was set.
    commits: AtomicUsize,
    cuts: AtomicUsize,
    stopped: AtomicBool,
}

impl Shared {
    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_nth(&self, every_nth: usize) -> bool {
        (self.commits.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(every_nth)
    }

    /// Counts before it cuts: who notices the cut finds it counted.
    fn cut(&self, connection: &Connection) {
        if !connection.closed.swap(true, Ordering::SeqCst) {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
        connection.close();
    }

    fn forget(&self, connection: &Arc<Connection>) {
        connection.close();
        self.connections().retain(|known| !Arc::ptr_eq(known, connection));
    }
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    /// `None` if the connection was silent from its start.
    server: Option<TcpStream>,
    silent: AtomicBool,
    closed: AtomicBool,
    /// Whether the current transaction was begun `READ ONLY`.
    read_only: AtomicBool,
}

impl Connection {
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for stream in std::iter::once(&self.client).chain(&self.server) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, server: SocketAddr, shared: &Arc<Shared>) {
    for client in listener.incoming().flatten() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        // A server that is down shows as a connection that closes immediately.
        let _ = serve(client, server, shared);
    }
}

fn serve(client: TcpStream, server: SocketAddr, shared: &Arc<Shared>) -> io::Result<()> {
    let fault = shared.fault();
    let server = match fault {
        Fault::Refuse => return Ok(()),
        Fault::SilentFromStart => None,
        _ => Some(TcpStream::connect_timeout(&server, CONNECT_LIMIT)?),
    };
    client.set_nodelay(true)?;
    let connection = Arc::new(Connection {
        silent: AtomicBool::new(server.is_none()),
        client,
        server,
        closed: AtomicBool::new(false),
        read_only: AtomicBool::new(false),
    });
    shared.connections().push(Arc::clone(&connection));
    // A fault that ends connections and was set between the check above and the push would have missed this one.
    match shared.fault() {
        Fault::Refuse => shared.cut(&connection),
        Fault::SilentFromStart => connection.silent.store(true, Ordering::SeqCst),
        _ => {}
    }
    if let Some(server) = &connection.server {
        server.set_nodelay(true)?;
        pump::start(&connection, shared)?;
    }
    Ok(())
}
