//! What the receiver prints for the person using it.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use hyper::http::request::Parts;
use serde_json::Value;

use crate::listen::verdict::Verdict;

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

pub fn event(number: u64, head: &Parts, body: &[u8], verdict: &Verdict) {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("–");
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let shown = parsed.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok());
    say(&format!(
        "#{number} {} {} · {} · attempt {} · {}\n{}\n{}\n",
        head.method,
        head.uri.path(),
        header("x-service-event"),
        header("x-service-attempt"),
        header("x-service-delivery"),
        verdict,
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
