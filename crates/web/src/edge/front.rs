//! The middleware around every request: its id and span, the rate limit, the timeout, panic handling,
//! common response headers and metrics.
//!
//! It is a single middleware because each one costs an allocation or two on the hot path.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rapport_app::refusal::{self, Refused};
use rapport_app::{App, Origin, metric};
use rapport_domain::device::Device;
use rapport_domain::id::CompanyId;
use rapport_domain::request_id::RequestId;
use tracing::Instrument;

use crate::api::deprecation::{self, DEPRECATED};
use crate::api::{self, upload};
use crate::edge::access_log::{Line, Who};
use crate::edge::auth::{Arrival, Credential, OPEN_PATHS, Scheme};
use crate::edge::client::{Client, Scheme as ClientScheme};
use crate::edge::compression::Wish;
use crate::edge::host::names_one_host;
use crate::edge::json;
use crate::edge::problem::{Fault, Problem};
use crate::edge::rate_limit::{RateLimiter, Verdict};
use crate::edge::server::Config;
use crate::edge::turned_away::{Check, TurnedAway};
use crate::pages::{Pages, Refusal, imports, with_navigation};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ONE_YEAR_OF_HTTPS: &str = "max-age=31536000";
/// The upload paths of the API and of the pages.
const UPLOAD_PATHS: [&str; 2] = [upload::PATH, imports::PATH];

/// Where a request for a page comes from.
pub fn origin_of(parts: &Parts) -> Origin {
    let id = parts.extensions.get::<RequestId>().copied();
    let request = id.unwrap_or_else(|| RequestId::numbered(0, 0));
    Origin { address: Client::of(&parts.extensions).address, request, device: device_of(&parts.headers) }
}

fn device_of(headers: &HeaderMap) -> Device {
    let sent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    sent.map_or_else(Device::default, Device::of)
}

pub struct Front {
    app: App,
    pages: Pages,
    limiter: Arc<RateLimiter>,
    turned_away: TurnedAway,
    request_timeout: Duration,
    upload_timeout: Duration,
    /// The service is reached over https, so browsers are told to use nothing else.
    is_secure: bool,
    access_log: bool,
    /// Distinguishes this process's request ids from those of other processes.
    process: u32,
    requests: AtomicU64,
}

impl Front {
    pub fn new(app: App, pages: Pages, limiter: Arc<RateLimiter>, config: &Config) -> Self {
        let process = u32::from_be_bytes(app.services().random());
        let is_secure = app.services().outside().base_url.starts_with("https://");
        let &Config { request_timeout, upload_timeout, access_log, .. } = config;
        let (requests, turned_away) = (AtomicU64::new(0), TurnedAway::default());
        Self {
            app,
            pages,
            limiter,
            turned_away,
            request_timeout,
            upload_timeout,
            is_secure,
            access_log,
            process,
            requests,
        }
    }

    /// Uploads may take long; everything else is quick.
    fn timeout(&self, request: &Request) -> Duration {
        let is_upload = request.method() == Method::POST && UPLOAD_PATHS.contains(&request.uri().path());
        if is_upload { self.upload_timeout } else { self.request_timeout }
    }

    /// Puts a refusal into the audit log. The caller gets the same response if that fails.
    async fn record(&self, refused: Refused, request: String) {
        if let Err(error) = refusal::record(&self.app, refused, request).await {
            rapport_app::log_failure!(error, "failed to record a refused request");
        }
    }

    /// The caller's own id if it is a plain word, otherwise a new one.
    fn request_id(&self, headers: &HeaderMap) -> RequestId {
        let sent = headers.get(REQUEST_ID).and_then(|value| RequestId::parse(value.as_bytes()));
        sent.unwrap_or_else(|| {
            RequestId::numbered(self.process, self.requests.fetch_add(1, Ordering::Relaxed))
        })
    }

    /// The request's line for the access log, if there is one. Handlers add the caller once they know who it is.
    fn log_line(&self, started: Instant, id: RequestId, request: &mut Request) -> Option<Line> {
        let who = self.access_log.then(Who::default)?;
        request.extensions_mut().insert(who.clone());
        Some(Line {
            started,
            id,
            method: method_name(request.method()),
            route: request.extensions().get::<MatchedPath>().cloned(),
            path: request.uri().path().to_owned(),
            address: Client::of(request.extensions()).address,
            who,
        })
    }
}

/// The middleware.
pub async fn around(State(front): State<Arc<Front>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = front.request_id(request.headers());
    let line = front.log_line(started, id, &mut request);
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let path = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let method = method_name(request.method());
    let is_api = request.uri().path().starts_with(api::PREFIX);
    let client = Client::of(request.extensions());
    let wish = Wish::of(request.headers());
    // Before the span: what is caught up with is about other requests.
    front.turned_away.catch_up(|| front.app.passed());
    let span = tracing::info_span!("request", id = id.as_str(), method, path);
    let served = async {
        let is_old = request.version() < Version::HTTP_11;
        if !names_one_host(request.headers(), request.uri(), is_old) {
            json::drain(request.into_body()).await;
            Served::page(without_host(is_api))
        } else if is_api {
            front.limited(request, client, id, next).await
        } else {
            let timeout = front.timeout(&request);
            request.extensions_mut().insert(id);
            Served::page(guarded(timeout, with_navigation(&front.pages, request, next)).await)
        }
    };
    let Served { mut response, company, has_credential } = served.instrument(span.clone()).await;
    if let Some(refused) = response.extensions_mut().remove::<Refused>() {
        front.record(refused, format!("{method} {path}")).instrument(span.clone()).await;
    }
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
    if let Some(check) = failed_check(&mut response, is_api, has_credential) {
        front.turned_away.log(check, client.address, front.app.passed());
    }
    let is_secure = front.is_secure && client.scheme != Some(ClientScheme::Http);
    write_headers(response.headers_mut(), id, is_secure);
    if is_api {
        deprecation::announce(DEPRECATED, method, path, response.headers_mut());
    }
    let status = response.status().as_u16();
    tracing::debug!(
        status,
        company,
        client = %client.address,
        scheme = client.scheme.map(ClientScheme::as_str),
        micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
        "request served"
    );
    count(path, method, response.status(), elapsed);
    let response = wish.grant(response);
    let Some(line) = line else { return response };
    if let Some(company) = company {
        line.who.is_of(CompanyId(company));
    }
    line.after(response)
}

/// Refuses a request that doesn't say which host it is for.
fn without_host(is_api: bool) -> Response {
    let problem = Problem::bad_host();
    if is_api { problem.into_response() } else { Refusal::Page(problem).into_response() }
}

/// The check that turned a request away, if one did. A request without a credential is no attempt at one, and invalid
/// input in a form is a typing error.
fn failed_check(response: &mut Response, is_api: bool, has_credential: bool) -> Option<Check> {
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS => Some(Check::Limit),
        StatusCode::UNAUTHORIZED if has_credential => Some(Check::Credential),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY if is_api => Some(Check::Input),
        StatusCode::FORBIDDEN => response.extensions_mut().remove(),
        _ => None,
    }
}

struct Served {
    response: Response,
    /// The company whose credential was presented.
    company: Option<i64>,
    /// Whether a program presented a credential, well-formed or not.
    has_credential: bool,
}

impl Served {
    /// A response that isn't the API's.
    const fn page(response: Response) -> Self {
        Self { response, company: None, has_credential: false }
    }
}

impl Front {
    /// Counts an API request against its limit, serves it if it is within it, and reports the limit to the
    /// caller either way.
    async fn limited(&self, mut request: Request, client: Client, id: RequestId, next: Next) -> Served {
        let address = client.address;
        let scheme = Scheme::of_path(request.uri().path());
        let credential = Credential::of(scheme, request.headers());
        let has_credential = scheme.is_sent(request.headers());
        let now = self.app.now();
        let is_open = OPEN_PATHS.contains(&request.uri().path());
        let (verdict, known) = match &credential.presented {
            _ if is_open => (self.limiter.admit_stranger(address, now), false),
            Some(presented) => self.limiter.admit_credential(&presented.hash, address, now),
            None => (self.limiter.admit_address(address, now), false),
        };
        let origin = Origin { address, request: id, device: device_of(request.headers()) };
        request.extensions_mut().insert(Arrival { credential, origin, known });
        let mut response = match verdict {
            Verdict::Pass(_) => {
                guarded(self.timeout(&request), with_navigation(&self.pages, request, next)).await
            }
            Verdict::Wait(_, seconds) => {
                json::drain(request.into_body()).await;
                Problem::too_many_requests(seconds).into_response()
            }
        };
        let standing = match (verdict, &credential.presented) {
            // Only now is it known whether the credential is valid, and whether it has a limit of its own.
            (Verdict::Pass(_), Some(presented)) if !known && !is_open => {
                self.limiter.standing(&presented.hash, address, now)
            }
            _ => verdict.standing(),
        };
        self.limiter.write(standing, response.headers_mut());
        let company = credential.presented.map(|presented| presented.company.0);
        Served { response, company, has_credential }
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

fn write_headers(headers: &mut HeaderMap, id: RequestId, is_secure: bool) {
    if let Ok(id) = HeaderValue::from_str(id.as_str()) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    let policy = header::CONTENT_SECURITY_POLICY;
    headers.entry(policy).or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    // Everything is private unless its handler says otherwise, as the assets and the API's documentation do.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if is_secure {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(ONE_YEAR_OF_HTTPS));
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

fn count(path: &str, method: &'static str, status: StatusCode, elapsed: Duration) {
    let path = path.to_owned();
    metric::HTTP_REQUEST_SECONDS
        .histogram([path.clone().into(), method.into(), class(status).into()])
        .record(elapsed.as_secs_f64());
    metric::HTTP_REQUESTS
        .counter([path.into(), method.into(), status.as_str().to_owned().into()])
        .increment(1);
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
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
