//! TLS of the service's own: the handshake, and what happens to a client that doesn't begin one.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// How a new connection begins.
pub enum Beginning {
    Secure(Box<TlsStream<TcpStream>>),
    /// It speaks plain HTTP, or something else.
    NotTls(TcpStream),
    Failed,
}

/// Makes the handshake, within the time that a request's head may take.
pub async fn begin(stream: TcpStream, config: Arc<ServerConfig>, limit: Duration) -> Beginning {
    timeout(limit, handshake(stream, config)).await.unwrap_or(Beginning::Failed)
}

async fn handshake(stream: TcpStream, config: Arc<ServerConfig>) -> Beginning {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) if first == [HANDSHAKE] => {}
        Ok(1) => return Beginning::NotTls(stream),
        _ => return Beginning::Failed,
    }
    match TlsAcceptor::from(config).accept(stream).await {
        Ok(stream) => Beginning::Secure(Box::new(stream)),
        Err(error) => {
            tracing::debug!(%error, "TLS handshake failed");
            Beginning::Failed
        }
    }
}
