//! What the receiver prints for the person using it.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use data_encoding::HEXLOWER;
use hyper::http::request::Parts;
use ring::hmac;
use serde_json::Value;

/// The result of checking a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong,
    /// No secret was given to check it with.
    Unchecked,
}

impl Verdict {
    /// Recomputes the signature over the raw body, and compares it in constant time.
    pub fn of(secrets: &[String], sent: Option<&str>, body: &[u8]) -> Self {
        if secrets.is_empty() {
            return Self::Unchecked;
        }
        let hex = sent.and_then(|sent| sent.strip_prefix("sha256="));
        let Some(tag) = hex.and_then(|hex| HEXLOWER.decode(hex.as_bytes()).ok()) else { return Self::Wrong };
        let fits = |secret: &String| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
            hmac::verify(&key, body, &tag).is_ok()
        };
        if secrets.iter().any(fits) { Self::Right } else { Self::Wrong }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Right => "signature verified",
            Self::Wrong => "SIGNATURE WRONG (answered 401)",
            Self::Unchecked => "signature not checked (no --secret)",
        }
    }
}

pub fn hello(address: SocketAddr, authority: &Path, checks: bool) {
    let shown = std::path::absolute(authority).unwrap_or_else(|_| authority.to_path_buf());
    say(&format!(
        "Listening on https://{address}/\n\n\
         Start the service so that it trusts this receiver and may send to it:\n\n  \
         rapport serve --extra-ca {} --allow-destination 127.0.0.1/32\n\n\
         and create a webhook with the URL https://{address}/hooks\n{}",
        shown.display(),
        if checks { "" } else { "Pass --secret whs_… to verify signatures.\n" }
    ));
}

pub fn event(number: u64, head: &Parts, body: &[u8], verdict: Verdict) {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("–");
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let shown = parsed.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok());
    say(&format!(
        "#{number} {} {} · {} · attempt {} · {}\n  {}\n{}\n",
        head.method,
        head.uri.path(),
        header("x-service-event"),
        header("x-service-attempt"),
        header("x-service-delivery"),
        verdict.words(),
        shown.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()),
    ));
}

pub fn handshake_failed(error: &io::Error) {
    say(&format!("A TLS handshake failed: {error}"));
}

pub fn unreadable(error: &(dyn std::error::Error + Send + Sync)) {
    say(&format!("Failed to read a request body: {error}"));
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_checked_over_the_raw_body() {
        let body = br#"{"id":"evt_1"}"#;
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"whs_secret");
        let sent = format!("sha256={}", HEXLOWER.encode(hmac::sign(&key, body).as_ref()));
        let of = |secret: &str, sent, body| Verdict::of(&[secret.to_owned()], sent, body);
        assert_eq!(of("whs_secret", Some(sent.as_str()), body), Verdict::Right);
        assert_eq!(of("whs_other", Some(sent.as_str()), body), Verdict::Wrong);
        assert_eq!(of("whs_secret", Some(sent.as_str()), br#"{"id": "evt_1"}"#), Verdict::Wrong);
        assert_eq!(of("whs_secret", None, body), Verdict::Wrong);
        let either = ["whs_other".to_owned(), "whs_secret".to_owned()];
        assert_eq!(Verdict::of(&either, Some(sent.as_str()), body), Verdict::Right);
        assert_eq!(Verdict::of(&[], None, body), Verdict::Unchecked);
    }
}
