//! The router, and the loop that accepts connections for it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::uri::PathAndQuery;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rapport_app::{App, metric};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt};

use crate::api::{self, Api};
use crate::edge::client::TrustedProxies;
use crate::edge::closing::Drain;
use crate::edge::front::{self, Front};
use crate::edge::hashing::Hashing;
use crate::edge::health;
use crate::edge::problem::Problem;
use crate::edge::rate_limit::{Rate, RateLimiter, network};
use crate::edge::shares::{Shares, half};
use crate::edge::slow_body::{Watch, Watched};
use crate::edge::tls::{self, Beginning};
use crate::pages::{self, Pages, Refusal, SetupSecret, is_own_path};

/// How long to wait when the system has run out of sockets or file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How much of a request's head or of a body's next chunk a connection may buffer.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// How many refused connections are told why at the same time. Any others are just closed.
const MAX_REFUSALS: usize = 64;
const REFUSAL_LIMIT: Duration = Duration::from_secs(1);

/// Renders the text of `/metrics`.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// Limits of the HTTP server.
#[derive(Clone)]
pub struct Config {
    /// Requests with one credential.
    pub per_credential: Rate,
    /// Requests from one address without a valid credential.
    pub per_address: Rate,
    /// Requests from one address to paths that anyone may call: invitations and password resets.
    pub per_stranger: Rate,
    /// Open connections. One address may have half of them.
    pub max_connections: usize,
    /// A request body that has not arrived after this time is slow. One address may have a quarter of
    /// `max_connections` slow bodies.
    pub slow_after: Duration,
    /// Open live-update streams of pages. One address may have half of them.
    pub max_streams: usize,
    /// The time for a request's head to arrive, and for the next request on a kept-alive connection.
    pub header_timeout: Duration,
    /// The same for trusted proxies: longer than they keep a connection themselves, so that they never send a request
    /// over one that is just being closed.
    pub proxy_header_timeout: Duration,
    pub body_timeout: Duration,
    /// The time for a whole request.
    pub request_timeout: Duration,
    /// The time for a whole file upload.
    pub upload_timeout: Duration,
    pub max_import_bytes: u64,
    /// The time for running requests to finish when the service stops.
    pub shutdown_timeout: Duration,
    /// How to stop behind a proxy. By default the listener and connections without a request are closed at once.
    pub drain: Drain,
    /// Cancelled when the service is asked to stop: it is no longer ready.
    pub stopping: CancellationToken,
    /// Proxies that say who sent a request. They may have any number of connections.
    pub trusted_proxies: TrustedProxies,
    /// The service speaks TLS with these certificates.
    pub tls: Option<Arc<ServerConfig>>,
    pub metrics: Option<MetricsText>,
    /// Whether every request is logged.
    pub access_log: bool,
    /// The secret in the link that creates the first company.
    pub setup: SetupSecret,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            per_credential: Rate { per_second: 2_000, burst: 2_000 },
            per_address: Rate { per_second: 50, burst: 100 },
            per_stranger: Rate { per_second: 1, burst: 10 },
            max_connections: 4_096,
            slow_after: Duration::from_secs(1),
            max_streams: 2_000,
            header_timeout: Duration::from_secs(10),
            proxy_header_timeout: Duration::from_secs(150),
            body_timeout: Duration::from_secs(20),
            request_timeout: Duration::from_secs(30),
            upload_timeout: Duration::from_hours(1),
            max_import_bytes: 1 << 30,
            shutdown_timeout: Duration::from_secs(10),
            drain: Drain::default(),
            stopping: CancellationToken::new(),
            trusted_proxies: TrustedProxies::default(),
            tls: None,
            metrics: None,
            access_log: false,
            setup: None,
        }
    }
}

/// The router of the whole service.
pub fn router(app: App, config: &Config) -> Router {
    let limiter = Arc::new(RateLimiter::new(config.per_credential, config.per_address, config.per_stranger));
    let hashing = Arc::new(Hashing::default());
    let pages = Pages::new(app.clone(), Arc::clone(&limiter), Arc::clone(&hashing), config);
    let front = Arc::new(Front::new(app.clone(), pages.clone(), Arc::clone(&limiter), config));
    let served = api::routes()
        .with_state(Api::new(app.clone(), limiter, hashing, config))
        .merge(health::routes(app, config.metrics.clone(), config.stopping.clone()))
        .merge(pages::routes(pages))
        .fallback(nothing_there)
        .method_not_allowed_fallback(other_method)
        .layer(from_fn_with_state(front, front::around));
    // A layer runs after route matching, so an outer router adds the slash.
    Router::new().fallback_service(served.map_request(with_slash))
}

/// Responds to unknown paths: a problem for programs, a page for people. A page path with a trailing slash redirects
/// to the path without it.
async fn nothing_there(uri: Uri) -> Response {
    let path = uri.path();
    if path.starts_with(api::PREFIX) {
        return Problem::not_found("path").into_response();
    }
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    match path.strip_suffix('/').map(|page| format!("{page}{query}")) {
        Some(page) if is_own_path(&page) => Redirect::permanent(&page).into_response(),
        _ => Refusal::not_found("page").into_response(),
    }
}

/// Responds to unsupported methods. The router adds the `Allow` header, which is all that `OPTIONS` needs.
async fn other_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::method_not_allowed().into_response()
}

/// Makes API paths work with and without the trailing slash: routes have it, files do not.
fn with_slash(mut request: Request) -> Request {
    let path = request.uri().path();
    let path = match path.strip_suffix('/') {
        Some(file) if api::is_file(file) => file.to_owned(),
        None if (path == "/api" || path.starts_with("/api/")) && !api::is_file(path) => {
            format!("{path}/")
        }
        _ => return request,
    };
    let text = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    if let Ok(rewritten) = PathAndQuery::try_from(text) {
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = Some(rewritten);
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// Serves connections until `shutdown`, then lets running requests finish.
pub async fn serve(listener: TcpListener, router: Router, config: &Config, shutdown: CancellationToken) {
    let slots = Arc::new(Semaphore::new(config.max_connections));
    let share = half(config.max_connections);
    let (addresses, refusals) = (Shares::new(share), Arc::new(Semaphore::new(MAX_REFUSALS)));
    let watch = Watch { slow_after: config.slow_after, addresses: Arc::new(Shares::new(half(share))) };
    let connections = TaskTracker::new();
    let idle_over = CancellationToken::new();
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(MAX_BUFFER_BYTES);
    let mut proxy_builder = builder.clone();
    proxy_builder.header_read_timeout(config.proxy_header_timeout);
    let admit = |(stream, peer, slot): Accepted| {
        let is_trusted = config.trusted_proxies.contains(peer);
        let place = if is_trusted {
            None
        } else if let Ok(place) = addresses.of(network(peer)).try_acquire_owned() {
            Some(place)
        } else {
            metric::HTTP_CONNECTIONS_REFUSED.counter([]).increment(1);
            // Over TLS there is no answer without a handshake, which costs more than the connection is worth.
            if config.tls.is_none()
                && let Ok(turn) = Arc::clone(&refusals).try_acquire_owned()
            {
                connections.spawn(refuse(stream, builder.clone(), turn));
            }
            return;
        };
        let connection = Connection {
            peer,
            proxies: config.trusted_proxies.clone(),
            builder: if is_trusted { proxy_builder.clone() } else { builder.clone() },
            router: router.clone(),
            watch: watch.clone(),
            shutdown: shutdown.clone(),
            idle_over: idle_over.clone(),
        };
        let tls = config.tls.clone().map(|tls| (tls, config.header_timeout));
        connections.spawn(connection.begin(stream, tls, (slot, place)));
    };
    let asked_at = {
        let mut closing = std::pin::pin!(config.drain.close(&listener, &shutdown));
        loop {
            tokio::select! {
                biased;
                asked_at = closing.as_mut() => break asked_at,
                accepted = accept(&listener, &slots) => admit(accepted),
            }
        }
    };
    if config.drain.is_used() {
        // What is still in the queue: nothing new arrives any more.
        loop {
            tokio::select! {
                biased;
                accepted = accept(&listener, &slots) => admit(accepted),
                () = std::future::ready(()) => break,
            }
        }
    }
    drop(listener);
    connections.close();
    end(&connections, &idle_over, config, asked_at).await;
}

/// Waits for the connections to end: those without a request are closed when their time is over, and what still runs at
/// the end of the time for all is left behind.
async fn end(connections: &TaskTracker, idle_over: &CancellationToken, config: &Config, asked_at: Instant) {
    tokio::select! {
        () = connections.wait() => {}
        () = sleep_until(asked_at + config.drain.idle) => {}
    }
    idle_over.cancel();
    if timeout_at(asked_at + config.shutdown_timeout, connections.wait()).await.is_err() {
        tracing::warn!(open = connections.len(), "shut down with open connections");
    }
}

/// A connection, its other end and its place among all connections.
type Accepted = (TcpStream, IpAddr, OwnedSemaphorePermit);

/// Accepts the next connection once there is room for it.
async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> Accepted {
    loop {
        let slot = Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address.ip(), slot),
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The places that a connection occupies: one of all, and one of its address.
type Places = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

struct Connection {
    peer: IpAddr,
    proxies: TrustedProxies,
    builder: http1::Builder,
    router: Router,
    watch: Watch,
    shutdown: CancellationToken,
    /// Cancelled when connections without a request are to be closed.
    idle_over: CancellationToken,
}

impl Connection {
    async fn begin(self, stream: TcpStream, tls: Option<(Arc<ServerConfig>, Duration)>, _places: Places) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "connection closed by the client");
            return;
        }
        let Some((tls, limit)) = tls else { return self.serve(stream).await };
        let beginning = tokio::select! {
            beginning = tls::begin(stream, tls, limit) => beginning,
            () = self.idle_over.cancelled() => return,
        };
        match beginning {
            Beginning::Secure(stream) => self.serve(*stream).await,
            Beginning::NotTls(stream) => respond(stream, &self.builder, Problem::not_tls).await,
            Beginning::Failed => {}
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let Self { peer, proxies, builder, router, watch, shutdown, idle_over } = self;
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            let client = proxies.client(peer, request.headers());
            request.extensions_mut().insert(client);
            let address = network(client.address);
            let request = request.map(|body| Watched::new(body, address, watch.clone()));
            let response = router.clone().call(request);
            let shutdown = shutdown.clone();
            async move {
                let mut response = response.await?;
                if shutdown.is_cancelled() {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        });
        let mut served = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = served.as_mut() => ended,
            () = idle_over.cancelled() => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended early");
        }
    }
}

/// Tells a client that its address has too many connections.
async fn refuse(stream: TcpStream, builder: http1::Builder, _turn: OwnedSemaphorePermit) {
    respond(stream, &builder, Problem::too_many_connections).await;
}

/// Answers whatever is asked first with a problem, which closes the connection.
async fn respond(stream: TcpStream, builder: &http1::Builder, problem: fn() -> Problem) {
    let service = hyper::service::service_fn(move |_: hyper::Request<Incoming>| {
        std::future::ready(Ok::<_, Infallible>(problem().into_response()))
    });
    let served = builder.serve_connection(TokioIo::new(stream), service);
    let _ = timeout(REFUSAL_LIMIT, served).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn only_api_paths_get_a_trailing_slash() {
        let table = [
            ("/api/accounts", "/api/accounts/"),
            ("/api/accounts/", "/api/accounts/"),
            ("/api/accounts?limit=5&q=a%2Fb", "/api/accounts/?limit=5&q=a%2Fb"),
            ("/api/accounts/?limit=5", "/api/accounts/?limit=5"),
            ("/api/openapi.json", "/api/openapi.json"),
            ("/api/openapi.json/", "/api/openapi.json"),
            ("/api/schemas/events", "/api/schemas/events/"),
            ("/api/schemas/events/account.created.json", "/api/schemas/events/account.created.json"),
            ("/api/schemas/events/account.created.json/", "/api/schemas/events/account.created.json"),
            ("/api", "/api/"),
            ("/apiary", "/apiary"),
            ("/health/live", "/health/live"),
            ("/", "/"),
            ("*", "*"),
        ];
        for (sent, seen) in table {
            let request = Request::builder().uri(sent).body(Body::empty()).unwrap();
            assert_eq!(with_slash(request).uri(), seen, "{sent}");
        }
    }
}
