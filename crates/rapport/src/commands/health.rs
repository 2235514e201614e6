//! `rapport health`: asks the service that runs with the same settings whether it is ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::print;
use crate::config::Config;
use crate::own_certificate;

/// The service itself gives up on its database before this.
const LIMIT: Duration = Duration::from_secs(5);
const MAX_ANSWER_BYTES: usize = 64 << 10;

pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let listen = &config.listen.value;
    let addresses = listen.candidates().with_context(|| format!("not ready: {listen} (--listen)"))?;
    let addresses: Vec<SocketAddr> = addresses.into_iter().map(reachable).collect();
    if addresses.iter().any(|address| address.port() == 0) {
        bail!("--listen: port 0 means any free port; name the port of the running service");
    }
    let tls = config.tls_files().map(|(cert, _)| own_certificate::client(cert)).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async { timeout(LIMIT, ask(&addresses, tls)).await });
    let Ok(answer) = asked else {
        bail!("not ready: no answer from {listen} within {} seconds", LIMIT.as_secs());
    };
    let (status, body) = answer.with_context(|| format!("not ready: no answer from {listen}"))?;
    if status != StatusCode::OK {
        bail!("not ready: {}", reason(status, &body));
    }
    print("ready\n")
}

async fn ask(
    addresses: &[SocketAddr],
    tls: Option<Arc<rustls::ClientConfig>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(addresses).await?;
    let address = stream.peer_addr()?;
    match tls {
        None => exchange(stream, address).await,
        Some(config) => {
            let stream = TlsConnector::from(config).connect(address.ip().into(), stream).await?;
            exchange(stream, address).await
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: SocketAddr,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get("/health/ready").header(header::HOST, address.to_string());
    let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
    Ok((status, body.map_err(anyhow::Error::from_boxed)?.to_bytes()))
}

/// The detail that the service gives, or else the status: something other than Rapport may have answered.
fn reason(status: StatusCode, body: &[u8]) -> String {
    let problem: Option<Value> = serde_json::from_slice(body).ok();
    let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
    detail.map_or_else(|| format!("the answer is {status}"), str::to_owned)
}

/// A service that listens on every address is asked on the loopback address.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_every_address_is_asked_on_loopback() {
        for (listen, asked) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:8080", "10.0.0.1:8080"),
            ("[2001:db8::1]:8080", "[2001:db8::1]:8080"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()), asked.parse().unwrap(), "{listen}");
        }
    }

    #[test]
    fn the_reason_is_the_services_own_if_it_gives_one() {
        let down = StatusCode::SERVICE_UNAVAILABLE;
        for (body, expected) in [
            (r#"{"detail": "the database cannot be read"}"#, "the database cannot be read"),
            ("<html>", "the answer is 503 Service Unavailable"),
            ("[]", "the answer is 503 Service Unavailable"),
        ] {
            assert_eq!(reason(down, body.as_bytes()), expected, "{body}");
        }
    }
}
