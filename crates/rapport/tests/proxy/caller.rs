//! A client that keeps its connection, with an address of its own.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, Socket, Type};

const LIMIT: Duration = Duration::from_mins(1);

pub struct Caller {
    from: Ipv4Addr,
    to: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Caller {
    /// A client with an address of this machine, such as 127.0.0.2.
    pub fn new(from: Ipv4Addr, to: &str) -> Self {
        Self { from, to: to.parse().expect("an address"), stream: None }
    }

    pub fn from(&self) -> String {
        self.from.to_string()
    }

    pub fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &Value) -> io::Result<Answer> {
        self.send("POST", path, headers, &body.to_string())
    }

    /// Sends a request over the connection that is open, or over a new one. Never sends it twice.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(connect(self.from, self.to)?),
        };
        write(stream.get_mut(), method, path, headers, body)?;
        let answer = read(&mut stream)?;
        if !answer.head.contains("connection: close") {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

pub fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(IpAddr::V4(from), 0).into())?;
    socket.connect_timeout(&to.into(), LIMIT)?;
    socket.set_read_timeout(Some(LIMIT))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket.into())
}

pub fn write(
    stream: &mut impl Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<()> {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: crm.example.com\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())
}

pub fn read(stream: &mut impl BufRead) -> io::Result<Answer> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the connection ended before the answer"));
        }
    }
    let head = head.to_ascii_lowercase();
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let body = if value("transfer-encoding:") == Some("chunked") {
        read_chunks(stream)?
    } else {
        let length = value("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        body
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned(), head })
}

fn read_chunks(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let length = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        stream.by_ref().take(length).read_to_end(&mut body)?;
        stream.read_line(&mut line)?;
        if length == 0 {
            return Ok(body);
        }
    }
}
