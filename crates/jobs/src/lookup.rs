//! Fetches a home page: over HTTPS, to checked addresses only, following a few redirects that are checked
//! too, with one deadline for everything. Reads only as much of the page as is needed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, LOCATION,
    USER_AGENT,
};
use hyper::{Request, Response};
use rapport_app::lookup::{FetchError, Fetched, HomePages};
use rapport_domain::destination::Destination;
use rapport_domain::lookup::{MAX_PAGE_BYTES, MAX_REDIRECTS, MAX_SECONDS, redirected};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::guard::{BoxFuture, Guard};
use crate::https::{Https, NotSent};

const AGENT: &str = concat!("Rapport/", env!("CARGO_PKG_VERSION"), " (lookup)");
/// How many pages may be fetched at once.
const AT_ONCE: usize = 16;

pub struct Lookup {
    https: Https,
    total: Duration,
    slots: Semaphore,
}

impl Lookup {
    pub fn new(guard: Arc<Guard>, tls: rustls::ClientConfig, tasks: TaskTracker) -> Self {
        let https = Https::new(guard, tls, tasks, "--allow-lookup");
        Self { https, total: Duration::from_secs(MAX_SECONDS), slots: Semaphore::new(AT_ONCE) }
    }

    /// Sets another deadline, for tests.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    async fn follow(&self, page: &Destination) -> Result<Fetched, FetchError> {
        let mut at = page.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.https.send(&at, request(&at)?).await.map_err(not_sent)?;
            let code = response.status().as_u16();
            let location = response.headers().get(LOCATION).filter(|_| matches!(code, 301..=303 | 307 | 308));
            if let Some(location) = location {
                let location = String::from_utf8_lossy(location.as_bytes());
                at = redirected(&at, &location).map_err(|fault| FetchError::BadRedirect(fault.detail))?;
                continue;
            }
            return if response.status().is_success() {
                receive(at, response).await
            } else {
                Err(FetchError::Answered(code))
            };
        }
        Err(FetchError::TooManyRedirects)
    }
}

impl HomePages for Lookup {
    fn fetch<'a>(&'a self, page: &'a Destination) -> BoxFuture<'a, Result<Fetched, FetchError>> {
        Box::pin(async move {
            let _slot = self.slots.try_acquire().map_err(|_| FetchError::Busy)?;
            let late =
                || Err(FetchError::Unreachable(format!("no page within {} s", self.total.as_secs_f32())));
            tokio::time::timeout(self.total, self.follow(page)).await.unwrap_or_else(|_| late())
        })
    }
}

fn request(page: &Destination) -> Result<Request<Full<Bytes>>, FetchError> {
    let own = |error: String| FetchError::Own(error);
    let host = HeaderValue::from_str(page.authority()).map_err(|error| own(error.to_string()))?;
    let request = Request::get(page.path_and_query())
        .header(HOST, host)
        .header(USER_AGENT, HeaderValue::from_static(AGENT))
        .header(ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml"))
        .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Full::default());
    request.map_err(|error| own(error.to_string()))
}

/// Reads the beginning of an HTML page.
async fn receive(at: Destination, response: Response<Incoming>) -> Result<Fetched, FetchError> {
    let header = |name| {
        let value = response.headers().get(name);
        value.map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let content_type = header(CONTENT_TYPE);
    let encoding = header(CONTENT_ENCODING);
    let is_plain = encoding.is_none_or(|encoding| encoding.trim().eq_ignore_ascii_case("identity"));
    if !is_html(content_type.as_deref()) || !is_plain {
        return Err(FetchError::NotHtml);
    }
    let (mut body, mut received) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            // The part received may be enough.
            Err(_) if !received.is_empty() => break,
            Err(error) => return Err(not_sent(NotSent::unreachable(error))),
        };
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_PAGE_BYTES - received.len();
        received.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() >= room {
            break;
        }
    }
    Ok(Fetched { at, content_type, body: received })
}

fn is_html(content_type: Option<&str>) -> bool {
    let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml"].iter().any(|html| essence.eq_ignore_ascii_case(html))
}

fn not_sent(error: NotSent) -> FetchError {
    match error {
        NotSent::Unreachable(reason) => FetchError::Unreachable(reason),
        NotSent::Own(reason) => FetchError::Own(reason),
    }
}
