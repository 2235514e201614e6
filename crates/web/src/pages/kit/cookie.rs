//! Reads and writes cookies.

use axum::http::header::{COOKIE, HeaderMap, HeaderValue};

/// The session cookie over https. Browsers accept it only from this host, over https.
const SECURE_SESSION: &str = "__Host-rapport";
/// The session cookie over http, for example on a laptop.
const PLAIN_SESSION: &str = "rapport";

pub const fn session_name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_SESSION } else { PLAIN_SESSION }
}

/// The value of a cookie. None if it is sent twice with different values, since either could be the right one.
pub fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// How long a browser keeps a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Days(i64),
    Seconds(i64),
    /// The browser deletes it.
    Not,
}

impl Keep {
    const fn seconds(self) -> i64 {
        match self {
            Self::Days(days) => days * 24 * 60 * 60,
            Self::Seconds(seconds) => seconds,
            Self::Not => 0,
        }
    }
}

/// A cookie for our own pages that scripts cannot read.
pub fn write(name: &str, value: &str, keep: Keep, is_secure: bool) -> HeaderValue {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", keep.seconds());
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (COOKIE, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let table: [(&[&str], Option<&str>); 6] = [
            (&["rapport=a"], Some("a")),
            (&["x=1; rapport=a;y=2"], Some("a")),
            (&["x=1", "rapport=a"], Some("a")),
            (&["rapport=a; rapport=a"], Some("a")),
            (&["rapport=a; rapport=b"], None),
            (&["xrapport=a"], None),
        ];
        for (sent, expected) in table {
            assert_eq!(read(&headers(sent), "rapport"), expected, "{sent:?}");
        }
    }

    #[test]
    fn over_https_the_session_is_for_https_only() {
        let secure = write(session_name(true), "v", Keep::Days(90), true);
        assert_eq!(secure, "__Host-rapport=v; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure");
        let plain = write(session_name(false), "", Keep::Not, false);
        assert_eq!(plain, "rapport=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }
}
