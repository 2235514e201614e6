//! A server between a client and a PostgreSQL server that ends the client's TLS with a certificate of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::postgres::plain;
use crate::receiver::Identity;
use crate::receiver::certificates::Authority;

/// A client's request for TLS: its length and a code in place of a protocol version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const YES: &[u8] = b"S";
const NO: &[u8] = b"N";

/// A running interceptor. Dropping it closes its port and its connections.
#[derive(Debug)]
pub struct PostgresInterceptor {
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PostgresInterceptor {
    /// Offers TLS with this certificate, or none at all. With `to_tls`, speaks TLS with the server as well.
    pub fn start(database: &str, identity: Option<Identity>, to_tls: bool) -> Self {
        let database = plain(database);
        let (before, rest) = database.split_once('@').expect("a user in the URL");
        let (server, name) = rest.split_once('/').expect("a database in the URL");
        let front = Arc::new(Front {
            server: server.parse().expect("the server's address"),
            acceptor: identity.map(|identity| {
                let mut config = identity.server_config();
                config.alpn_protocols.clear();
                TlsAcceptor::from(Arc::new(config))
            }),
            connector: to_tls.then(connector),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, mut stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                loop {
                    let client = tokio::select! {
                        accepted = listener.accept() => accepted.expect("a client").0,
                        _ = &mut stopped => return,
                    };
                    let front = Arc::clone(&front);
                    // A connection may end in any way that its sides choose.
                    tokio::spawn(async move { front.serve(client).await });
                }
            });
        });
        Self { url: format!("{before}@{address}/{name}"), stop: Some(stop), thread: Some(thread) }
    }

    /// The same database, through this interceptor.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for PostgresInterceptor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Front {
    server: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    connector: Option<TlsConnector>,
}

impl Front {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let mut opening = [0; TLS_REQUEST.len()];
        client.read_exact(&mut opening).await?;
        match &self.acceptor {
            Some(acceptor) if opening == TLS_REQUEST => {
                client.write_all(YES).await?;
                self.pass_on(acceptor.accept(client).await?, &[]).await
            }
            None if opening == TLS_REQUEST => {
                client.write_all(NO).await?;
                self.pass_on(client, &[]).await
            }
            _ => self.pass_on(client, &opening).await,
        }
    }

    async fn pass_on(
        &self,
        mut client: impl AsyncRead + AsyncWrite + Unpin,
        opening: &[u8],
    ) -> io::Result<()> {
        let mut server = TcpStream::connect(self.server).await?;
        let Some(connector) = &self.connector else {
            server.write_all(opening).await?;
            return copy_bidirectional(&mut client, &mut server).await.map(drop);
        };
        server.write_all(&TLS_REQUEST).await?;
        let mut answer = [0];
        server.read_exact(&mut answer).await?;
        assert_eq!(answer, YES, "the server offers TLS");
        let name = ServerName::from(self.server.ip());
        let mut server = connector.connect(name, server).await?;
        server.write_all(opening).await?;
        copy_bidirectional(&mut client, &mut server).await.map(drop)
    }
}

fn connector() -> TlsConnector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions of the provider")
        .with_root_certificates(Authority::shared().roots())
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}
