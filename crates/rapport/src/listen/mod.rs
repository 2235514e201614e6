//! `rapport listen`: a local HTTPS receiver for people who build the receiving end of a webhook.
//!
//! It has a certificate from its own authority, verifies signatures, prints what arrives, and can be
//! told to misbehave.

mod authority;
mod print;
mod verdict;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rapport_app::Clock as _;
use rapport_domain::standard_webhook::shown_secret;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::cli::{Answer, Listen};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::data_dir;
use crate::listen::verdict::Verdict;

const MAX_BODY_BYTES: usize = 4 << 20;
/// How long `--answer slow` waits before it answers: longer than a sender should wait.
const SLOW: Duration = Duration::from_secs(20);

pub fn run(config: &Config, listen: &Listen) -> anyhow::Result<ExitCode> {
    data_dir::require(config)?;
    let directory = config.data_dir.value.join("listen");
    let authority = authority::load_or_make(&directory)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&authority, &directory, listen))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(authority: &authority::Authority, directory: &Path, listen: &Listen) -> anyhow::Result<()> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), listen.port);
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address} (--port)"))?;
    let address = listener.local_addr()?;
    print::hello(address, &directory.join(authority::CA_FILE), listen.secret.is_some());
    let receiver = Receiver {
        secrets: listen.secret.iter().map(|secret| shown_secret(secret)).collect(),
        answer: listen.answer,
        retry_after: listen.retry_after,
        count: AtomicU64::new(0),
        clock: SystemClock::new(),
    };
    let acceptor = TlsAcceptor::from(Arc::new(authority.server_config()?));
    tokio::select! {
        _ = tokio::signal::ctrl_c() => Ok(()),
        ended = accept(listener, acceptor, Arc::new(receiver)) => ended,
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, receiver: Arc<Receiver>) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(converse(stream, acceptor.clone(), Arc::clone(&receiver)));
    }
}

/// A receiver in the same process as a service. It prints what arrives, and answers 200.
pub struct Beside {
    listener: std::net::TcpListener,
    acceptor: TlsAcceptor,
    /// The authority that the service has to trust.
    pub ca_file: PathBuf,
}

impl Beside {
    /// Listens on a free port, with its certificate in `directory`.
    pub fn bind(directory: &Path) -> anyhow::Result<Self> {
        let authority = authority::load_or_make(directory)?;
        let acceptor = TlsAcceptor::from(Arc::new(authority.server_config()?));
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.context("the local receiver failed to listen on 127.0.0.1")?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, acceptor, ca_file: directory.join(authority::CA_FILE) })
    }

    pub fn url(&self) -> anyhow::Result<String> {
        Ok(format!("https://{}", self.listener.local_addr()?))
    }

    /// Receives until the process ends, on its own thread: if nobody reads what it prints, only that thread
    /// blocks. Requests that are signed with none of the secrets are refused.
    pub fn start(self, secrets: Vec<String>) -> anyhow::Result<()> {
        let answer = Answer::Code(StatusCode::OK);
        let (count, clock) = (AtomicU64::new(0), SystemClock::new());
        let receiver = Receiver { secrets, answer, retry_after: None, count, clock };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            let received = runtime.block_on(async {
                let listener = TcpListener::from_std(self.listener)?;
                accept(listener, self.acceptor, Arc::new(receiver)).await
            });
            if let Err(error) = received {
                tracing::warn!(%error, "the local receiver ended");
            }
        };
        std::thread::Builder::new().name("receiver".to_owned()).spawn(run)?;
        Ok(())
    }
}

async fn converse(stream: TcpStream, acceptor: TlsAcceptor, receiver: Arc<Receiver>) {
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return print::handshake_failed(&error),
    };
    let service = service_fn(move |request| {
        let receiver = Arc::clone(&receiver);
        async move { Ok::<_, Infallible>(receiver.receive(request).await) }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

struct Receiver {
    /// The secrets of the webhooks that point here. Empty if signatures are not checked.
    secrets: Vec<String>,
    answer: Answer,
    retry_after: Option<u32>,
    count: AtomicU64,
    clock: SystemClock,
}

impl Receiver {
    async fn receive(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, MAX_BODY_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                print::unreadable(error.as_ref());
                return answer(StatusCode::PAYLOAD_TOO_LARGE);
            }
        };
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let verdict = Verdict::of(&self.secrets, &head.headers, &body, self.clock.now());
        print::event(number, &head, &body, &verdict);
        if verdict.is_refused() {
            return answer(StatusCode::UNAUTHORIZED);
        }
        self.respond().await
    }

    async fn respond(&self) -> Response<Full<Bytes>> {
        match self.answer {
            Answer::Code(code) => {
                let mut response = answer(code);
                if let Some(seconds) = self.retry_after {
                    response.headers_mut().insert(hyper::header::RETRY_AFTER, seconds.into());
                }
                response
            }
            Answer::Slow => {
                tokio::time::sleep(SLOW).await;
                answer(StatusCode::OK)
            }
            Answer::None => std::future::pending().await,
        }
    }
}

fn answer(code: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = code;
    response
}
