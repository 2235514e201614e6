//! One request to a provider, in the types of the protocol.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::header::{ACCEPT_ENCODING, CONNECTION, HOST, HeaderValue, USER_AGENT};
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use rapport_domain::destination::Destination;

use crate::guard::BoxFuture;
use crate::https::{Https, NotSent};

const AGENT: &str = concat!("Rapport/", env!("CARGO_PKG_VERSION"), " (single sign-on)");
/// The largest documents of providers have some ten kilobytes.
const MAX_BODY_BYTES: usize = 256 << 10;

/// The way to providers.
pub struct Wire(pub Https);

impl<'c> AsyncHttpClient<'c> for Wire {
    type Error = NotSent;
    type Future = BoxFuture<'c, Result<HttpResponse, NotSent>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(exchange(&self.0, request))
    }
}

/// Sends a request and reads the whole response. Redirects are not followed: they could lead a secret elsewhere.
async fn exchange(https: &Https, request: HttpRequest) -> Result<HttpResponse, NotSent> {
    let (parts, body) = request.into_parts();
    let to = Destination::parse(&parts.uri.to_string()).map_err(NotSent::unreachable)?;
    let own = |error: String| NotSent::Own(error);
    let host = HeaderValue::from_str(to.authority()).map_err(|error| own(error.to_string()))?;
    let sent =
        Request::builder().method(parts.method).uri(to.path_and_query()).body(Full::new(Bytes::from(body)));
    let mut sent = sent.map_err(|error| own(error.to_string()))?;
    *sent.headers_mut() = parts.headers;
    let more = [
        (HOST, host),
        (USER_AGENT, HeaderValue::from_static(AGENT)),
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        (CONNECTION, HeaderValue::from_static("close")),
    ];
    sent.headers_mut().extend(more);
    let (parts, body) = https.send(&to, sent).await?.into_parts();
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
    let body = body.map_err(|error| NotSent::Unreachable(error.to_string()))?;
    Ok(HttpResponse::from_parts(parts, body.to_bytes().to_vec()))
}
