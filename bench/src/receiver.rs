//! Webhook receivers: HTTPS listeners, as cheap as we can make them. The path of a webhook decides how it is answered:
//! `/ok/N` immediately, `/stall/N` never, `/flaky/N` every fifteenth time, `/tires/N` a hundred times and then never
//! again.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use parking_lot::Mutex;
use rapport_domain::time::Time;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::measure::{Latencies, now};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const READ_BYTES: usize = 8 * 1024;
/// Flaky webhooks succeed often enough that they never fail twenty times in a row.
const FLAKY_SUCCEEDS_EVERY: u32 = 15;
const MOST_FLAKY: usize = 128;
const TIRES_AFTER: u32 = 100;
/// More than there are healthy webhooks wherever there are bad ones.
const FIRST_HOSTS: usize = 16;
/// One in this many arrivals has its age measured.
const SAMPLE_EVERY: u64 = 8;

/// A request to a healthy webhook, with the account it is about.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub webhook: usize,
    pub account: usize,
    pub at: Instant,
    /// The time since the payload was frozen, inside the transaction of the change.
    pub age: Duration,
}

/// Counts of arrivals.
pub struct Arrivals {
    /// At healthy webhooks.
    pub healthy: Arc<AtomicU64>,
    /// At the others, answered or not.
    pub others: AtomicU64,
    keeps: AtomicBool,
    kept: Mutex<Vec<Arrival>>,
    ages: Mutex<Latencies>,
    flaky: Vec<AtomicU32>,
}

/// Where webhooks point: each to its own host, or all to one, like a service that forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    Own,
    One,
}

pub struct Receiver {
    /// To the sender, each port is a separate host.
    addresses: Vec<SocketAddr>,
    authority: NamedTempFile,
    pub certificate: CertificateDer<'static>,
    pub arrivals: Arc<Arrivals>,
}

impl Receiver {
    /// Starts with this many hosts. The first few have a thread to themselves, and the others have one; both end with the
    /// process. Bad webhooks are on the last hosts, so a healthy one next to them does not wait for their handshakes.
    pub fn start(hosts: usize) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
        let authority = NamedTempFile::new().context("a file for the receiver's certificate")?;
        std::fs::write(&authority, certificate.pem())?;
        let acceptor = TlsAcceptor::from(Arc::new(tls(certificate.der().clone(), key.serialize_der())?));
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for _ in 0..hosts {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            addresses.push(listener.local_addr()?);
            listeners.push(listener);
        }
        let arrivals = Arc::new(Arrivals {
            healthy: Arc::default(),
            others: AtomicU64::new(0),
            keeps: AtomicBool::new(false),
            kept: Mutex::default(),
            ages: Mutex::default(),
            flaky: (0..MOST_FLAKY).map(|_| AtomicU32::new(0)).collect(),
        });
        let others = listeners.split_off(hosts.min(FIRST_HOSTS));
        for listeners in [listeners, others] {
            let (runtime, acceptor, arrivals) =
                (crate::drive::runtime()?, acceptor.clone(), Arc::clone(&arrivals));
            thread::Builder::new().name("receiver".to_owned()).spawn(move || {
                runtime.block_on(async {
                    for listener in listeners {
                        tokio::spawn(accept(listener, acceptor.clone(), Arc::clone(&arrivals)));
                    }
                    std::future::pending::<()>().await;
                });
            })?;
        }
        Ok(Self { addresses, authority, certificate: certificate.der().clone(), arrivals })
    }

    pub fn authority(&self) -> &Path {
        self.authority.path()
    }

    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    pub fn url(&self, behaviour: &str, number: usize, hosts: Hosts) -> String {
        // Bad receivers from the other end, so that they share no host with healthy ones.
        let number_of_host = number % self.addresses.len();
        let place =
            if behaviour == "ok" { number_of_host } else { self.addresses.len() - 1 - number_of_host };
        let host = if hosts == Hosts::Own { place } else { 0 };
        format!("https://{}/{behaviour}/{number}", self.addresses[host])
    }
}

impl Arrivals {
    /// Starts over: what came before does not count.
    pub fn begin(&self, keeps: bool) {
        self.healthy.store(0, Ordering::SeqCst);
        self.others.store(0, Ordering::SeqCst);
        self.flaky.iter().for_each(|count| count.store(0, Ordering::SeqCst));
        self.kept.lock().clear();
        self.keeps.store(keeps, Ordering::SeqCst);
        self.begin_ages();
    }

    /// Forgets the ages seen so far, as after a warm-up.
    pub fn begin_ages(&self) {
        *self.ages.lock() = Latencies::default();
    }

    /// The ages of a sample of the arrivals.
    pub fn ages(&self) -> Latencies {
        self.ages.lock().clone()
    }

    pub fn take_kept(&self) -> Vec<Arrival> {
        std::mem::take(&mut self.kept.lock())
    }

    pub fn count(&self) -> u64 {
        self.healthy.load(Ordering::SeqCst)
    }

    /// Waits until this many have arrived, but not longer than `limit`; returns how many have.
    pub fn wait_for(&self, count: u64, limit: Duration) -> u64 {
        let deadline = Instant::now() + limit;
        while self.count() < count && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        self.count()
    }

    /// Takes a request; returns whether it is answered.
    fn take(&self, path: &str, body: &[u8]) -> bool {
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let behaviour = parts.next().unwrap_or_default();
        let webhook: usize = parts.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        if behaviour == "ok" {
            self.record(webhook, body);
            return true;
        }
        self.others.fetch_add(1, Ordering::Relaxed);
        let count = self.flaky[webhook % MOST_FLAKY].fetch_add(1, Ordering::Relaxed) + 1;
        match behaviour {
            "flaky" => count.is_multiple_of(FLAKY_SUCCEEDS_EVERY),
            "tires" => count <= TIRES_AFTER,
            _ => false,
        }
    }

    fn record(&self, webhook: usize, body: &[u8]) {
        let keeps = self.keeps.load(Ordering::Relaxed);
        let count = self.healthy.fetch_add(1, Ordering::Relaxed);
        if !keeps && !count.is_multiple_of(SAMPLE_EVERY) {
            return;
        }
        let at = Instant::now();
        let Some(created_at) = member(body, "\"created_at\":\"").and_then(|text| Time::parse(text).ok())
        else {
            return;
        };
        let age = Duration::from_micros(u64::try_from(now().micros_since(created_at)).unwrap_or(0));
        self.ages.lock().record(age);
        let account = member(body, "\"imported_id\":\"crm-").and_then(|digits| digits.parse().ok());
        if let Some(account) = account
            && keeps
        {
            self.kept.lock().push(Arrival { webhook, account, at, age });
        }
    }
}

/// The text between `before` and the next quotation mark.
fn member<'a>(body: &'a [u8], before: &str) -> Option<&'a str> {
    let at = body.windows(before.len()).position(|window| window == before.as_bytes())? + before.len();
    let end = body[at..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&body[at..at + end]).ok()
}

fn tls(certificate: CertificateDer<'static>, key: Vec<u8>) -> anyhow::Result<ServerConfig> {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

async fn accept(listener: std::net::TcpListener, acceptor: TlsAcceptor, arrivals: Arc<Arrivals>) {
    let listener = TcpListener::from_std(listener).expect("a listener in the runtime");
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (acceptor, arrivals) = (acceptor.clone(), Arc::clone(&arrivals));
        tokio::spawn(async move {
            // The other end closes when it likes.
            let _ = serve(socket, acceptor, arrivals).await;
        });
    }
}

async fn serve(socket: TcpStream, acceptor: TlsAcceptor, arrivals: Arc<Arrivals>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut stream = acceptor.accept(socket).await?;
    let mut received = Vec::with_capacity(READ_BYTES);
    loop {
        while let Some((path, body, end)) = complete(&received)? {
            let answers = arrivals.take(path, body);
            received.drain(..end);
            if answers {
                stream.write_all(ANSWER).await?;
                stream.flush().await?;
            }
        }
        received.reserve(READ_BYTES);
        if stream.read_buf(&mut received).await? == 0 {
            return Ok(());
        }
    }
}

/// Path, body and length of the first request, once all of it has arrived.
fn complete(received: &[u8]) -> io::Result<Option<(&str, &[u8], usize)>> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "not a request that this receiver reads");
    let head = std::str::from_utf8(&received[..end]).map_err(|_| bad())?;
    let path = head.split(' ').nth(1).ok_or_else(bad)?;
    let length = head.lines().skip(1).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let body = end + 4..end + 4 + length.ok_or_else(bad)?;
    Ok((received.len() >= body.end).then(|| (path, &received[body.clone()], body.end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_when_it_is_complete() {
        let request = b"POST /ok/7 HTTP/1.1\r\nhost: x\r\nContent-Length: 4\r\n\r\nbodyPOST";
        for cut in 0..request.len() - 4 {
            assert!(complete(&request[..cut]).unwrap().is_none(), "{cut}");
        }
        let (path, body, end) = complete(request).unwrap().unwrap();
        assert_eq!((path, body, end), ("/ok/7", b"body".as_slice(), request.len() - 4));
    }

    #[test]
    fn a_path_says_how_it_is_answered() {
        let receiver = Receiver::start(2).unwrap();
        let arrivals = &receiver.arrivals;
        arrivals.begin(true);
        let body = format!(
            r#"{{"id":"evt_1","created_at":"{}","data":{{"account":{{"imported_id":"crm-00000042"}}}}}}"#,
            now()
        );
        assert!(arrivals.take("/ok/3", body.as_bytes()));
        assert!(!arrivals.take("/stall/0", body.as_bytes()));
        let answered: Vec<bool> = (0..30).map(|_| arrivals.take("/flaky/1", body.as_bytes())).collect();
        assert_eq!(answered.iter().filter(|answers| **answers).count(), 2);
        assert!(answered[14] && answered[29]);
        let kept = arrivals.take_kept();
        assert_eq!((kept.len(), kept[0].webhook, kept[0].account), (1, 3, 42));
        assert!(kept[0].age < Duration::from_secs(5), "{:?}", kept[0].age);
        assert_eq!(arrivals.ages().count(), 1);
        assert_eq!((arrivals.count(), arrivals.others.load(Ordering::Relaxed)), (1, 31));
    }
}
