//! Requires that requests that change something come from our own pages. Browsers send their origin in
//! `Sec-Fetch-Site`, older ones in `Origin`. A request with neither is refused.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;

use crate::edge::json;
use crate::edge::origin::{Site, site};
use crate::edge::turned_away::Check;
use crate::pages::kit::refusal::Refusal;

/// The middleware.
pub async fn guard(request: Request, next: Next) -> Response {
    if request.method().is_safe() || is_our_own(request.headers()) {
        return next.run(request).await;
    }
    json::drain(request.into_body()).await;
    let mut response = Refusal::from_elsewhere().into_response();
    response.extensions_mut().insert(Check::Site);
    response
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
    if is_own_path(text) { text.to_owned() } else { "/".to_owned() }
}

/// Whether every browser and proxy takes this text for a path on this service. Browsers read a backslash as a slash
/// and skip tabs and line breaks; some proxies decode `%5C` and `%2F`. So a path contains none of these, and no
/// empty part, with which another host's name could begin. A query may contain anything that is encoded.
pub fn is_own_path(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    let is_path = path.starts_with('/')
        && !decoded.windows(2).any(|pair| pair == b"//")
        && !decoded.iter().any(|byte| *byte == b'\\' || byte.is_ascii_control());
    is_plain && is_path
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
    fn only_our_own_paths_are_led_to() {
        let ours = [
            "/",
            "/accounts?status=customer",
            "/accounts?q=a%5Cb%0A%2F%2F&next=//x",
            "/accounts#top",
            "/settings/members/",
            "/caf%C3%A9",
        ];
        for path in ours {
            assert_eq!(own_path(path), path);
        }
        let others = [
            "",
            "accounts",
            "https://evil.test/",
            "javascript:alert(1)",
            "//evil.test/",
            "///evil.test/",
            "/\\evil.test/",
            "\\/evil.test/",
            "\\\\evil.test/",
            "/a/\\evil.test/",
            "/a\\..\\evil",
            "/accounts?next=\\evil",
            "/%5Cevil.test/",
            "/%5cevil.test/",
            "/%5C%5Cevil.test/",
            "/%2Fevil.test/",
            "/%2fevil.test/",
            "/a//evil.test/",
            "/.//evil.test/",
            "/..//evil.test/",
            "/\tevil.test/",
            "/\t/evil.test/",
            "/\n/evil.test/",
            "\t//evil.test/",
            " //evil.test/",
            "/%09/evil.test/",
            "/%0A/evil.test/",
            "/%0d%0aset-cookie:%20x",
            "/%00",
            "/a\r\nset-cookie: x",
            "/a b",
            "/caf\u{e9}",
            "/\u{2f}\u{2f}evil.test",
            "/\u{ff0f}evil.test",
        ];
        for path in others {
            assert_eq!(own_path(path), "/", "{path:?}");
        }
    }
}
