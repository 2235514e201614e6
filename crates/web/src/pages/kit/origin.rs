//! Requires that requests that change something come from our own pages. Browsers send their origin in
//! `Sec-Fetch-Site`, older ones in `Origin`. A request with neither is refused.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::edge::json;
use crate::edge::origin::{Site, site};
use crate::pages::kit::refusal::Refusal;

/// The middleware.
pub async fn guard(request: Request, next: Next) -> Response {
    if request.method().is_safe() || is_our_own(request.headers()) {
        return next.run(request).await;
    }
    json::drain(request.into_body()).await;
    Refusal::from_elsewhere().into_response()
}

fn is_our_own(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = site(headers) {
        return site == Site::Ours;
    }
    let origin = text(header::ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
    matches!((origin, text(header::HOST.as_str())), (Some((_, host)), Some(ours)) if host == ours)
}

/// A path on this service to redirect to. Anything else becomes the dashboard.
pub fn own_path(text: &str) -> String {
    let is_ours = text.starts_with('/')
        && !text.starts_with("//")
        && !text.starts_with("/\\")
        && text.chars().all(|letter| letter.is_ascii_graphic());
    if is_ours { text.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    #[test]
    fn only_our_own_pages_may_send_forms() {
        let table: [(&[(&'static str, &'static str)], bool); 9] = [
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            // Typed into the address bar, which is never the source of a form.
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://crm.test"), ("host", "crm.test")], false),
            (&[("origin", "http://crm.test:8080"), ("host", "crm.test:8080")], true),
            (&[("origin", "http://crm.test"), ("host", "crm.test:8080")], false),
            (&[("origin", "null"), ("host", "crm.test")], false),
            (&[("host", "crm.test")], false),
        ];
        for (sent, expected) in table {
            let pairs = sent.iter();
            let headers: HeaderMap = pairs
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            assert_eq!(is_our_own(&headers), expected, "{sent:?}");
        }
    }

    #[test]
    fn logging_in_leads_to_our_own_pages_only() {
        let table = [
            ("/accounts?status=customer", "/accounts?status=customer"),
            ("", "/"),
            ("//evil.test/", "/"),
            ("/\\evil.test/", "/"),
            ("https://evil.test/", "/"),
            ("/a\r\nset-cookie: x", "/"),
            ("javascript:alert(1)", "/"),
        ];
        for (sent, expected) in table {
            assert_eq!(own_path(sent), expected, "{sent:?}");
        }
    }
}
