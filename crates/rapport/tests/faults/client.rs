//! Clients that outlive the service: they send a request again until it has an answer, wherever the service is by then.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A client whose request has no answer within this time gives up, and the run has failed.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two tries of a request, so that refused clients leave the processor to what is recovering.
pub const PAUSE: Duration = Duration::from_millis(2);
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Where the nodes are. A node that is started again has another address.
#[derive(Clone)]
pub struct Nodes(Vec<Arc<Mutex<String>>>);

impl Nodes {
    pub fn at<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Self {
        Self(addresses.into_iter().map(|address| Arc::new(Mutex::new(address.to_owned()))).collect())
    }

    /// Sends the node's clients to its new address.
    pub fn redirect(&self, node: usize, address: &str) {
        address.clone_into(&mut self.0[node].lock().unwrap());
    }

    /// One of them, whatever the number.
    pub fn one(&self, number: usize) -> Self {
        Self(vec![Arc::clone(&self.0[number % self.0.len()])])
    }
}

pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Lines without the last line break.
    pub headers: &'a str,
    pub body: Option<&'a Value>,
}

/// The request had no answer in time.
pub struct GaveUp;

pub struct Client {
    nodes: Nodes,
    turn: usize,
    line: Option<Line>,
}

impl Client {
    /// A client of these nodes, which goes to the next one if one doesn't answer.
    pub const fn new(nodes: Nodes) -> Self {
        Self { nodes, turn: 0, line: None }
    }

    /// Sends a request once: the status and the body of the answer, if there is one.
    pub fn try_once(&mut self, request: &Request) -> Option<(u16, String)> {
        if self.line.is_none() {
            let nodes = &self.nodes.0;
            let address = nodes[self.turn % nodes.len()].lock().unwrap().clone();
            self.line = Line::open(&address).ok();
        }
        let answer = self.line.as_mut().and_then(|line| line.send(request).ok());
        if answer.is_none() {
            self.line = None;
            self.turn += 1;
        }
        answer
    }

    /// Sends a request until an answer settles it.
    pub fn send_until(
        &mut self,
        request: &Request,
        mut settles: impl FnMut(u16, &str) -> bool,
    ) -> Result<(u16, String), GaveUp> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.try_once(request) {
                Some((status, answer)) if settles(status, &answer) => return Ok((status, answer)),
                _ => thread::sleep(PAUSE),
            }
        }
        Err(GaveUp)
    }
}

/// A connection that is kept open.
pub struct Line(BufReader<TcpStream>);

impl Line {
    pub fn open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(READ_LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub fn send(&mut self, request: &Request) -> std::io::Result<(u16, String)> {
        let Request { method, path, headers, body } = request;
        let body = body.map_or_else(String::new, Value::to_string);
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: rapport\r\n{headers}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length) = (0, 0);
        loop {
            let mut head = String::new();
            if self.0.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let head = head.trim_end().to_ascii_lowercase();
            if head.is_empty() {
                break;
            }
            if let Some(rest) = head.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap_or(0);
            } else if let Some(rest) = head.strip_prefix("content-length:") {
                length = rest.trim().parse().unwrap_or(0);
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        Ok((status, String::from_utf8_lossy(&answer).into_owned()))
    }
}
