//! A light HTTP/1.1 client: one request at a time over a kept connection, as cheap as we can make it, because
//! it shares the machine with what it measures.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const READ_BYTES: usize = 64 * 1024;

/// Everything before the body of a request to one endpoint.
#[derive(Debug, Clone)]
pub struct Endpoint(String);

impl Endpoint {
    /// `authorization` is a whole header, `name: value`.
    pub fn post(path: &str, authorization: &str) -> Self {
        Self::of("POST", path, authorization)
    }

    pub fn of(method: &str, path: &str, authorization: &str) -> Self {
        Self::with(method, path, "application/json", authorization)
    }

    /// With a body that is not JSON.
    pub fn post_as(path: &str, media_type: &str, authorization: &str) -> Self {
        Self::with("POST", path, media_type, authorization)
    }

    fn with(method: &str, path: &str, media_type: &str, authorization: &str) -> Self {
        Self(format!(
            "{method} {path} HTTP/1.1\r\nhost: bench.test\r\ncontent-type: {media_type}\r\n{authorization}\r\n\
             content-length: "
        ))
    }

    /// Writes a whole request, replacing what `request` held.
    pub fn write(&self, request: &mut Vec<u8>, body: &[u8]) {
        request.clear();
        request.extend_from_slice(self.0.as_bytes());
        request.extend_from_slice(body.len().to_string().as_bytes());
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(body);
    }
}

#[derive(Debug)]
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends a request and waits for its answer.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.received.clear();
        loop {
            if let Some((status, body)) = complete(&self.received)? {
                return Ok(Answer { status, body: &self.received[body] });
            }
            self.received.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The status and the position of the body, once the whole answer is there.
fn complete(received: &[u8]) -> io::Result<Option<(u16, Range<usize>)>> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "not the HTTP this client speaks");
    let head = std::str::from_utf8(&received[..end]).map_err(|_| bad())?;
    let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(bad)?;
    let mut length = 0;
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(':').ok_or_else(bad)?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| bad())?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(bad());
        }
    }
    let body = end + 4..end + 4 + length;
    Ok((received.len() >= body.end).then_some((status, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_when_its_body_is() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\nx: y\r\n\r\nbody";
        for cut in 0..answer.len() {
            assert_eq!(complete(&answer[..cut]).unwrap(), None, "{cut}");
        }
        let (status, body) = complete(answer).unwrap().unwrap();
        assert_eq!((status, &answer[body]), (201, b"body".as_slice()));
        assert!(complete(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
