//! The middleware around every request: its id and span, the rate limit, the timeout, panic handling,
//! common response headers and metrics.
//!
//! It is a single middleware because each one costs an allocation or two on the hot path.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rapport_app::App;
use tracing::Instrument;

use crate::api::{self, upload};
use crate::edge::auth::{Arrival, Credential, OPEN_PATHS, Scheme};
use crate::edge::json;
use crate::edge::problem::{Fault, Problem};
use crate::edge::rate_limit::{RateLimiter, Standing, Verdict};
use crate::edge::server::Config;
use crate::pages::imports;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID_BYTES: usize = 64;
/// The upload paths of the API and of the pages.
const UPLOAD_PATHS: [&str; 2] = [upload::PATH, imports::PATH];

/// The other end of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

pub struct Front {
    app: App,
    limiter: Arc<RateLimiter>,
    request_timeout: Duration,
    upload_timeout: Duration,
    /// Distinguishes this process's request ids from those of other processes.
    process: u32,
    requests: AtomicU64,
}

impl Front {
    pub fn new(app: App, limiter: Arc<RateLimiter>, config: &Config) -> Self {
        let process = u32::from_be_bytes(app.services().random());
        let &Config { request_timeout, upload_timeout, .. } = config;
        Self { app, limiter, request_timeout, upload_timeout, process, requests: AtomicU64::new(0) }
    }

    /// Uploads may take long; everything else is quick.
    fn timeout(&self, request: &Request) -> Duration {
        let is_upload = request.method() == Method::POST && UPLOAD_PATHS.contains(&request.uri().path());
        if is_upload { self.upload_timeout } else { self.request_timeout }
    }

    /// The caller's own id if it is a plain word, otherwise a new one.
    fn request_id(&self, headers: &HeaderMap) -> HeaderValue {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let sent = headers.get(REQUEST_ID).filter(|value| {
            let bytes = value.as_bytes();
            (1..=MAX_REQUEST_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(plain)
        });
        sent.cloned().unwrap_or_else(|| {
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let text = format!("{:08x}-{number:x}", self.process);
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
        })
    }
}

/// The middleware.
pub async fn around(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = front.request_id(request.headers());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let path = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let method = method_name(request.method());
    let is_api = request.uri().path().starts_with(api::PREFIX);
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or(""), method, path);
    let served = async {
        if is_api {
            front.limited(request, next).await
        } else {
            let timeout = front.timeout(&request);
            Served { response: guarded(timeout, next.run(request)).await, company: None }
        }
    };
    let Served { mut response, company } = served.instrument(span.clone()).await;
    let elapsed = started.elapsed();
    let _entered = span.enter();
    if response.status().is_server_error()
        && let Some(Fault(fault)) = response.extensions_mut().remove::<Fault>()
    {
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            // The outage itself is logged once; a line for every request would bury it.
            tracing::debug!(company, %fault, "request failed");
        } else {
            tracing::error!(company, %fault, "request failed");
        }
    }
    write_headers(response.headers_mut(), id, is_api);
    let status = response.status().as_u16();
    tracing::debug!(
        status,
        company,
        micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
        "request served"
    );
    count(path, method, status, elapsed);
    response
}

struct Served {
    response: Response,
    /// The company whose credential was presented.
    company: Option<i64>,
}

impl Front {
    /// Counts an API request against its limit, serves it if it is within it, and reports the limit to the
    /// caller either way.
    async fn limited(&self, mut request: Request, next: Next) -> Served {
        let address =
            request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        let credential = Credential::of(Scheme::of_path(request.uri().path()), request.headers());
        let now = self.app.now();
        let is_open = OPEN_PATHS.contains(&request.uri().path());
        let (verdict, known) = match &credential.presented {
            _ if is_open => (self.limiter.admit_stranger(address, now), false),
            Some(presented) => self.limiter.admit_credential(&presented.hash, address, now),
            None => (self.limiter.admit_address(address, now), false),
        };
        request.extensions_mut().insert(Arrival { credential, address, known });
        let mut response = match verdict {
            Verdict::Pass(_) => guarded(self.timeout(&request), next.run(request)).await,
            Verdict::Wait(_, seconds) => {
                json::drain(request.into_body()).await;
                Problem::too_many_requests(seconds).into_response()
            }
        };
        Standing::write(verdict.standing(), response.headers_mut());
        Served { response, company: credential.presented.map(|presented| presented.company.0) }
    }
}

/// Responds with an error if the handler panics or takes too long.
async fn guarded(timeout: Duration, response: impl Future<Output = Response>) -> Response {
    match tokio::time::timeout(timeout, without_panic(response)).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Problem::internal(format!("panic: {panic}")).into_response(),
        Err(_) => Problem::timed_out().into_response(),
    }
}

async fn without_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            Poll::Ready(Err(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()))
        }
    })
    .await
}

fn write_headers(headers: &mut HeaderMap, id: HeaderValue, is_api: bool) {
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    let policy = header::CONTENT_SECURITY_POLICY;
    headers.entry(policy).or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    if is_api {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
}

/// A method as a metric label. Callers cannot add labels by inventing methods.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::PUT => "PUT",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

fn count(path: &str, method: &'static str, status: u16, elapsed: Duration) {
    let path = path.to_owned();
    metrics::histogram!("rapport_http_request_seconds", "path" => path.clone(), "method" => method)
        .record(elapsed.as_secs_f64());
    let status =
        StatusCode::from_u16(status).map_or_else(|_| String::new(), |status| status.as_str().to_owned());
    metrics::counter!("rapport_http_requests_total", "path" => path, "method" => method, "status" => status)
        .increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_caught_with_its_message() {
        assert_eq!(without_panic(async { 7 }).await, Ok(7));
        let caught = without_panic(async { panic!("number {}", 9) }).await;
        assert_eq!(caught, Err::<(), _>("number 9".to_owned()));
    }

    #[test]
    fn methods_are_a_fixed_set_of_labels() {
        assert_eq!(method_name(&Method::GET), "GET");
        assert_eq!(method_name(&Method::from_bytes(b"BREW").unwrap()), "OTHER");
    }
}
