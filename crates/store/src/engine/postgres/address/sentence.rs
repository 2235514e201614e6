//! Why no connection was made, and what to do about it, in plain words.

use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error as TlsError};
use tokio_postgres::Error as PgError;
use tokio_postgres::error::{DbError, SqlState};

use super::Mode;
use super::tls::Failure;
use crate::engine::sql_state;

/// How many of a certificate's names an error lists.
const MAX_LISTED_NAMES: usize = 3;
/// The library's own words, which have no type.
const NO_TLS: &str = "server does not support TLS";
const NO_BINDING: &str = "server did not use channel binding";
const NO_PASSWORD: &str = "password missing";
/// The server's words for errors that share their code with many others.
const WANTS_CERTIFICATE: &str = "client certificate";
const OTHER_CERTIFICATE: &str = "channel binding check failed";

pub fn of_connecting(error: &PgError, mode: Mode) -> String {
    let cause = std::error::Error::source(error);
    if let Some(failure) = cause.and_then(|cause| cause.downcast_ref::<Failure>()) {
        return failure.to_string();
    }
    if let Some(failure) = cause.and_then(|cause| cause.downcast_ref()).and_then(inside) {
        return of_tls(failure);
    }
    if error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
        let said = error.as_db_error().map_or("", DbError::message);
        if said.contains(WANTS_CERTIFICATE) {
            return format!(
                "the server asks for a client certificate: name one with sslcert and sslkey ({said})"
            );
        }
        if said.contains(OTHER_CERTIFICATE) {
            return format!(
                "the server has another certificate than the one we see, so something intercepts the connection ({said})"
            );
        }
    }
    match cause.map(ToString::to_string).as_deref() {
        Some(NO_TLS) => format!(
            "the server doesn't offer TLS, which sslmode={} asks for; turn on ssl on the server, or use another sslmode",
            mode.as_str()
        ),
        Some(NO_BINDING) => {
            "the server doesn't offer channel binding, which channel_binding=require asks for; it needs \
                             TLS, and a password that the server stores for scram-sha-256"
                .to_owned()
        }
        Some(NO_PASSWORD) => {
            "the server asks for a password, and none is given; put it into the address, PGPASSWORD \
                              or a password file (PGPASSFILE)"
                .to_owned()
        }
        _ => sql_state::described(error),
    }
}

pub fn of_handshake(error: &io::Error) -> String {
    match inside(error) {
        Some(error) => of_tls(error),
        None => format!("the TLS handshake failed: {error}"),
    }
}

fn inside(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

fn of_tls(error: &TlsError) -> String {
    match error {
        TlsError::InvalidCertificate(error) => of_certificate(error),
        TlsError::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the server speaks no version of TLS that Rapport does; it needs TLS 1.2 or 1.3".to_owned()
        }
        TlsError::AlertReceived(alert) if is_about_our_certificate(*alert) => format!(
            "the server refused the client certificate ({alert:?}); check sslcert and sslkey, and that the server's \
             ssl_ca_file contains its authority"
        ),
        error => format!("the TLS connection failed: {error}"),
    }
}

fn is_about_our_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::AccessDenied
    )
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the server's certificate expired on {}; renew it", day(*not_after))
        }
        CertificateError::Expired => "the server's certificate has expired; renew it".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("the server's certificate isn't valid before {}; check its dates and this machine's clock", day(*not_before))
        }
        CertificateError::NotValidYet => {
            "the server's certificate isn't valid yet; check its dates and this machine's clock".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => wrong_host(&expected.to_str(), presented),
        CertificateError::UnknownIssuer => {
            "the server's certificate was issued by an unknown authority; name a file with the authority's certificate \
             (sslrootcert), and have the server send its intermediate certificates"
                .to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate isn't meant for servers; replace it".to_owned()
        }
        error => format!("the server's certificate is invalid ({error}); replace it"),
    }
}

fn wrong_host(expected: &str, presented: &[String]) -> String {
    let names: Vec<&str> = presented.iter().filter_map(|name| readable_name(name)).collect();
    let (listed, others) = names.split_at(names.len().min(MAX_LISTED_NAMES));
    let for_whom = match (listed, others.len()) {
        ([], _) => {
            return format!(
                "the server's certificate names no host, at least not as a subject alternative name; it needs {expected} \
                 there for sslmode=verify-full"
            );
        }
        (listed, 0) => listed.join(", "),
        (listed, more) => format!("{} and {more} more", listed.join(", ")),
    };
    format!(
        "the server's certificate is for {for_whom}, not for {expected}; use a host that it names, or another certificate"
    )
}

/// A certificate's name as webpki lists it, such as `DnsName("example.org")`, if a person can read it.
fn readable_name(listed: &str) -> Option<&str> {
    let quoted = listed.strip_prefix("DnsName(").or_else(|| listed.strip_prefix("IpAddress("))?;
    let name = quoted.strip_suffix(')')?.trim_matches('"');
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())).then_some(name)
}

fn day(time: UnixTime) -> String {
    let second = i64::try_from(time.as_secs()).ok();
    let time = second.and_then(|second| Timestamp::from_second(second).ok());
    time.map_or_else(|| "an unknown day".to_owned(), |time| time.to_zoned(TimeZone::UTC).date().to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn refusals_read_as_sentences() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let alert = TlsError::AlertReceived;
        let table: [(TlsError, &str); 5] = [
            (
                CertificateError::ExpiredContext { time: at(0), not_after: at(1_793_491_200) }.into(),
                "the server's certificate expired on 2026-11-01; renew it",
            ),
            (
                CertificateError::NotValidYetContext { time: at(0), not_before: at(1_793_491_200) }.into(),
                "the server's certificate isn't valid before 2026-11-01; check its dates and this machine's clock",
            ),
            (CertificateError::Expired.into(), "the server's certificate has expired; renew it"),
            (
                alert(AlertDescription::UnknownCA),
                "the server refused the client certificate (UnknownCA); check sslcert and sslkey, and that the server's \
                 ssl_ca_file contains its authority",
            ),
            (
                alert(AlertDescription::ProtocolVersion),
                "the server speaks no version of TLS that Rapport does; it needs TLS 1.2 or 1.3",
            ),
        ];
        for (error, expected) in table {
            assert_eq!(of_handshake(&io::Error::other(error)), expected);
        }
        let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(of_handshake(&closed), "the TLS handshake failed: unexpected end of file");
    }

    #[test]
    fn a_wrong_host_lists_a_few_names_that_can_be_read() {
        let table: [(&[&str], &str); 3] = [
            (
                &["DnsName(\"a.test\")", "IpAddress(192.0.2.1)"],
                "is for a.test, 192.0.2.1, not for db.acme.test",
            ),
            (
                &["DnsName(\"a\")", "DnsName(\"b\")", "DnsName(\"c\")", "DnsName(\"d\")"],
                "is for a, b, c and 1 more, not for db.acme.test",
            ),
            (&["DnsName(\"a\0b\")"], "names no host"),
        ];
        for (presented, expected) in table {
            let presented: Vec<String> = presented.iter().map(|&name| name.to_owned()).collect();
            let sentence = wrong_host("db.acme.test", &presented);
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}
