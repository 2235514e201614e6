//! The `Host` header.

use axum::http::header::{self, HeaderMap};
use axum::http::uri::{Authority, Uri};

/// Whether a request names the host that it is for, exactly once, as HTTP requires. Proxies and caches that disagree
/// about the host of a request can be made to mix up requests.
pub fn names_one_host(headers: &HeaderMap, uri: &Uri, is_old: bool) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => is_host(host.as_bytes()),
        // HTTP/1.0 has no `Host` header; the whole URL says the same.
        (None, None) => is_old && uri.host().is_some(),
        _ => false,
    }
}

fn is_host(value: &[u8]) -> bool {
    let authority = Authority::try_from(value);
    authority.is_ok_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(hosts: &[&str]) -> HeaderMap {
        hosts.iter().map(|host| (header::HOST, HeaderValue::from_str(host).unwrap())).collect()
    }

    #[test]
    fn a_request_names_one_host() {
        let table: [(&[&str], &str, bool, bool); 13] = [
            (&["crm.test"], "/", false, true),
            (&["crm.test:8080"], "/", false, true),
            (&["[2001:db8::1]:8080"], "/", false, true),
            (&["crm.test"], "/", true, true),
            (&["crm.test"], "http://crm.test/", false, true),
            (&[], "/", false, false),
            (&[], "/", true, false),
            (&[], "http://crm.test/", false, false),
            (&[], "http://crm.test/", true, true),
            (&["crm.test", "crm.test"], "/", false, false),
            (&["crm.test", "evil.test"], "/", true, false),
            (&[""], "/", false, false),
            (&["user@crm.test"], "/", false, false),
        ];
        for (hosts, uri, is_old, expected) in table {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(names_one_host(&headers(hosts), &uri, is_old), expected, "{hosts:?} {uri} {is_old}");
        }
        for bad in ["crm test", "crm.test/path"] {
            assert!(!names_one_host(&headers(&[bad]), &Uri::from_static("/"), false), "{bad}");
        }
    }
}
