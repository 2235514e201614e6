//! The way out through an HTTP proxy, with CONNECT (RFC 9110, section 9.3.6).
//!
//! The proxy gets the address that the guard has judged, never a name: otherwise it would resolve the name itself, and
//! could be used to reach what the guard refuses. TLS runs inside the tunnel, with the name of the receiver, so the
//! proxy sees neither the payload nor the headers.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use data_encoding::BASE64;
use rapport_domain::delivery::Failure;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::failure::Broken;

/// How long the head of the proxy's answer may be.
const MAX_HEAD_BYTES: usize = 8 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// An HTTP proxy that opens tunnels.
#[derive(Clone, PartialEq, Eq)]
pub struct EgressProxy {
    /// A name or an address, without brackets.
    pub host: String,
    pub port: u16,
    /// User and password.
    pub login: Option<(String, String)>,
}

impl fmt::Display for EgressProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl fmt::Debug for EgressProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl EgressProxy {
    /// Connects to the proxy itself. It isn't a destination: the operator of the server chose it.
    pub async fn dial(&self) -> Result<TcpStream, Broken> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| self.unreachable(&error))?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    /// Asks for a tunnel to this address.
    pub async fn open(&self, stream: &mut TcpStream, to: SocketAddr) -> Result<(), Broken> {
        let head = self.head(to);
        let answered = async {
            stream.write_all(head.as_bytes()).await?;
            read_head(stream).await
        };
        let head = answered.await.map_err(|error| self.silent(&error))?;
        match status(&head) {
            Some(200..300) => Ok(()),
            Some(code) => Err(refused(code, to)),
            None => {
                let error = format!("{self} isn't an HTTP proxy; check --egress-proxy");
                Err(Broken::new(Failure::Own, error))
            }
        }
    }

    fn head(&self, to: SocketAddr) -> String {
        let login = self.login.as_ref().map(|(user, password)| {
            let login = BASE64.encode(format!("{user}:{password}").as_bytes());
            format!("Proxy-Authorization: Basic {login}\r\n")
        });
        format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{}\r\n", login.unwrap_or_default())
    }

    fn unreachable(&self, error: &io::Error) -> Broken {
        let reason = match error.kind() {
            io::ErrorKind::ConnectionRefused => "it refused the connection".to_owned(),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "no route to it".to_owned(),
            io::ErrorKind::TimedOut => "it didn't answer".to_owned(),
            other => other.to_string(),
        };
        let error = format!("the egress proxy {self} can't be reached ({reason}); check --egress-proxy");
        Broken::new(Failure::Own, error)
    }

    /// There was no tunnel in time: the proxy doesn't answer, or it was asked and waits for the receiver.
    pub fn late(&self, to: SocketAddr, was_asked: bool, seconds: f32) -> Broken {
        if was_asked {
            let error = format!(
                "the egress proxy didn't reach {to} within {seconds} s; check the receiver's firewall"
            );
            return Broken::new(Failure::Timeout, error);
        }
        let error = format!("the egress proxy {self} didn't answer within {seconds} s; check --egress-proxy");
        Broken::new(Failure::Own, error)
    }

    fn silent(&self, error: &io::Error) -> Broken {
        let error = match error.kind() {
            io::ErrorKind::InvalidData => format!("{self} isn't an HTTP proxy; check --egress-proxy"),
            _ => format!("the egress proxy {self} closed the connection before it answered; check its log"),
        };
        Broken::new(Failure::Own, error)
    }
}

/// What a proxy's refusal means for the attempt. Only what the proxy says about the receiver is charged to it.
fn refused(code: u16, to: SocketAddr) -> Broken {
    let (failure, error) = match code {
        407 => {
            let error = "the egress proxy didn't accept the user and password (407); check --egress-proxy";
            (Failure::Own, error.to_owned())
        }
        401 | 403 => {
            let error =
                format!("the egress proxy doesn't allow connections to {to} ({code}); ask its operator");
            (Failure::Refused, error)
        }
        502..=504 => {
            let error = format!(
                "the egress proxy couldn't reach {to} ({code}); check that the receiver is up and listening"
            );
            (Failure::Connect, error)
        }
        code => {
            (Failure::Own, format!("the egress proxy answered {code} instead of connecting; check its log"))
        }
    };
    Broken::new(failure, error)
}

/// Reads up to the end of the head. Only the explanation of a refusal can follow it, because in TLS the client speaks
/// first; nobody reads that.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(512);
    loop {
        let mut part = [0; 512];
        let count = stream.read(&mut part).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..count]);
        if head.windows(HEAD_END.len()).any(|end| end == HEAD_END) {
            return Ok(head);
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// The code of a status line, `HTTP/1.1 200 OK`.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.strip_prefix("HTTP/1.")?.split(' ').skip(1);
    words.next().filter(|word| word.len() == 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_says_whether_there_is_a_tunnel() {
        let table: [(&[u8], Option<u16>); 7] = [
            (b"HTTP/1.1 200 Connection established\r\n\r\n", Some(200)),
            (b"HTTP/1.0 200\r\n\r\n", Some(200)),
            (b"HTTP/1.1 407 Proxy Authentication Required\r\nX: y\r\n\r\n", Some(407)),
            (b"HTTP/2 200\r\n\r\n", None),
            (b"SSH-2.0-OpenSSH\r\n\r\n", None),
            (b"HTTP/1.1 20\r\n\r\n", None),
            (b"\r\n\r\n", None),
        ];
        for (head, code) in table {
            assert_eq!(status(head), code, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn a_refusal_reads_as_a_sentence_and_is_charged_only_if_it_is_about_the_receiver() {
        let to: SocketAddr = "203.0.113.7:443".parse().unwrap();
        let table = [
            (
                407,
                Failure::Own,
                "the egress proxy didn't accept the user and password (407); check --egress-proxy",
            ),
            (
                403,
                Failure::Refused,
                "the egress proxy doesn't allow connections to 203.0.113.7:443 (403); ask its operator",
            ),
            (
                504,
                Failure::Connect,
                "the egress proxy couldn't reach 203.0.113.7:443 (504); check that the receiver is up and listening",
            ),
            (500, Failure::Own, "the egress proxy answered 500 instead of connecting; check its log"),
            (302, Failure::Own, "the egress proxy answered 302 instead of connecting; check its log"),
        ];
        for (code, failure, error) in table {
            assert_eq!(refused(code, to), Broken::new(failure, error));
        }
    }

    #[test]
    fn the_request_names_the_address_and_the_password_is_shown_nowhere_else() {
        let login = Some(("rapport".to_owned(), "hunter2:x".to_owned()));
        let proxy = EgressProxy { host: "proxy.acme.test".to_owned(), port: 3128, login };
        let to: SocketAddr = "[2001:db8::7]:8443".parse().unwrap();
        let expected = "CONNECT [2001:db8::7]:8443 HTTP/1.1\r\nHost: [2001:db8::7]:8443\r\n\
                        Proxy-Authorization: Basic cmFwcG9ydDpodW50ZXIyOng=\r\n\r\n";
        assert_eq!(proxy.head(to), expected);
        assert_eq!(format!("{proxy} {proxy:?}"), "proxy.acme.test:3128 proxy.acme.test:3128");
        let open = EgressProxy { host: "::1".to_owned(), port: 1, login: None };
        assert_eq!(open.head(to), "CONNECT [2001:db8::7]:8443 HTTP/1.1\r\nHost: [2001:db8::7]:8443\r\n\r\n");
        assert_eq!(open.to_string(), "[::1]:1");
    }
}
