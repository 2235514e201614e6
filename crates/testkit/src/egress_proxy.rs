//! An HTTP proxy that opens tunnels with CONNECT, or answers otherwise on request. It records what it was asked. Every tunnel
//! leads to one place, whatever address was asked for, so that a test can pretend to reach public addresses.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What the proxy does with a request for a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyAnswer {
    /// Opens it.
    Tunnel,
    /// Refuses with this status.
    Status(u16),
    /// Sends something other than HTTP.
    Nonsense,
    /// Closes the connection without a word.
    Close,
    /// Accepts the request and never answers.
    Silence,
}

/// A request for a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTunnel {
    /// The address and the port.
    pub target: String,
    pub host: Option<String>,
    pub authorization: Option<String>,
}

/// A running proxy. Dropping it closes its port.
#[derive(Debug)]
pub struct TestEgressProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    leads_to: SocketAddr,
    answer: Mutex<ProxyAnswer>,
    asked: Mutex<Vec<AskedTunnel>>,
    /// Connections that wait for nothing, so that they stay open.
    silent: Mutex<Vec<TcpStream>>,
    stopped: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestEgressProxy {
    /// Starts a proxy whose tunnels lead there.
    pub fn to(leads_to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let address = listener.local_addr().expect("the proxy's address");
        let shared = Arc::new(Shared {
            leads_to,
            answer: Mutex::new(ProxyAnswer::Tunnel),
            asked: Mutex::default(),
            silent: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if for_thread.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&for_thread)) else { continue };
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests for tunnels like this from now on. Open tunnels stay.
    pub fn answer(&self, answer: ProxyAnswer) {
        *locked(&self.shared.answer) = answer;
    }

    /// The requests so far, in order.
    pub fn asked(&self) -> Vec<AskedTunnel> {
        locked(&self.shared.asked).clone()
    }
}

impl Drop for TestEgressProxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut client: TcpStream, shared: &Shared) {
    let Ok(head) = read_head(&mut client) else { return };
    locked(&shared.asked).push(read_request(&head));
    let answer = *locked(&shared.answer);
    match answer {
        ProxyAnswer::Tunnel => {
            let Ok(server) = TcpStream::connect(shared.leads_to) else { return };
            if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").is_ok() {
                pump(client, server);
            }
        }
        ProxyAnswer::Status(code) => {
            let head = format!("HTTP/1.1 {code} No\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno.\n");
            let _ = client.write_all(head.as_bytes());
        }
        ProxyAnswer::Nonsense => drop(client.write_all(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")),
        ProxyAnswer::Close => {}
        ProxyAnswer::Silence => locked(&shared.silent).push(client),
    }
}

fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn read_request(head: &str) -> AskedTunnel {
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.to_owned())
    };
    let line = head.lines().next().unwrap_or_default();
    let target = line.strip_prefix("CONNECT ").and_then(|rest| rest.strip_suffix(" HTTP/1.1"));
    AskedTunnel {
        target: target.unwrap_or(line).to_owned(),
        host: header("Host"),
        authorization: header("Proxy-Authorization"),
    }
}

/// Passes bytes on in both directions until both sides are done.
fn pump(client: TcpStream, server: TcpStream) {
    let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else { return };
    let forth = thread::spawn(move || one_way(from_client, server));
    one_way(from_server, client);
    let _ = forth.join();
}

fn one_way(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
