//! Explains in a sentence why no complete response came, for the attempt's record: what happened, then what
//! to do. People read it, so it never quotes a library's messages.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use rapport_domain::delivery::Failure;
use rustls::InvalidMessage;

use crate::certificate;

/// Why an attempt got no complete response, as recorded.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    pub failure: Failure,
    pub error: String,
}

impl Broken {
    pub fn new(failure: Failure, error: impl Into<String>) -> Self {
        Self { failure, error: error.into() }
    }

    /// The connection to an address failed.
    pub fn connecting(address: SocketAddr, error: &io::Error) -> Self {
        if is_ours(error) {
            return Self::new(Failure::Own, format!("the server can't open a connection ({})", error.kind()));
        }
        let sentence = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                format!("{address} refused the connection; check that the receiver is up and listening")
            }
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                format!("no route to {address}; check the address and the network")
            }
            io::ErrorKind::TimedOut => format!("{address} didn't answer; check its firewall"),
            io::ErrorKind::ConnectionReset => format!("{address} reset the connection"),
            io::ErrorKind::PermissionDenied => {
                format!("the server isn't allowed to connect to {address}; check its firewall")
            }
            other => format!("connecting to {address} failed ({other})"),
        };
        Self::new(Failure::Connect, sentence)
    }

    /// The TLS handshake over a connection failed.
    pub fn handshake(error: &io::Error) -> Self {
        if let Some(tls) = tls_error(error) {
            return Self::tls(tls);
        }
        Self::new(Failure::Protocol, format!("{} during the TLS handshake", io_sentence(error)))
    }

    /// An established connection delivered no status.
    pub fn response(error: &hyper::Error) -> Self {
        match Cause::of(error) {
            Cause::Tls(tls) => Self::tls(tls),
            Cause::Head(sentence) => Self::new(Failure::Protocol, sentence),
            Cause::Body => Self::new(Failure::Protocol, "the response isn't valid HTTP/1.1"),
            Cause::Connection(happened) => {
                Self::new(Failure::Protocol, format!("{happened} before it answered"))
            }
        }
    }

    /// The response ended early, after its status and headers.
    pub fn body(error: &hyper::Error) -> Self {
        let cause = match Cause::of(error) {
            Cause::Tls(tls) => tls_sentence(tls),
            Cause::Connection(happened) => happened,
            Cause::Head(_) | Cause::Body => "its body isn't valid HTTP/1.1".to_owned(),
        };
        Self::new(Failure::Protocol, format!("the response ended early: {cause}"))
    }

    fn tls(error: &rustls::Error) -> Self {
        let ours =
            matches!(error, rustls::Error::FailedToGetCurrentTime | rustls::Error::FailedToGetRandomBytes);
        Self::new(if ours { Failure::Own } else { Failure::Tls }, tls_sentence(error))
    }
}

/// No sockets, no local address or no network: that isn't the receiver's fault.
fn is_ours(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS))
        || matches!(
            error.kind(),
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::NetworkDown | io::ErrorKind::OutOfMemory
        )
}

/// The cause of an error from the HTTP library.
enum Cause<'a> {
    Tls(&'a rustls::Error),
    /// The status line or the headers are invalid; why, in a sentence.
    Head(&'static str),
    /// The body's framing is invalid.
    Body,
    /// The connection ended; how, in a sentence.
    Connection(String),
}

impl<'a> Cause<'a> {
    fn of(error: &'a hyper::Error) -> Self {
        if error.is_parse_too_large() {
            return Self::Head("the response's headers are too large (at most 100 of them, and 64 KiB)");
        }
        if error.is_parse_status() {
            return Self::Head("the response's status line is invalid");
        }
        if error.is_parse() {
            return Self::Head("the response isn't valid HTTP/1.1");
        }
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(inner) = cause.downcast_ref::<hyper::Error>() {
                return Self::of(inner);
            }
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                return match tls_error(io) {
                    Some(tls) => Self::Tls(tls),
                    // The chunk decoder reports errors this way.
                    None if matches!(io.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
                        Self::Body
                    }
                    None => Self::Connection(io_sentence(io)),
                };
            }
            source = cause.source();
        }
        Self::Connection("the receiver closed the connection".to_owned())
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

fn io_sentence(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "the receiver reset the connection".to_owned(),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected => "the receiver closed the connection".to_owned(),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "the receiver became unreachable".to_owned()
        }
        io::ErrorKind::TimedOut => "the receiver stopped answering".to_owned(),
        other => format!("the connection failed ({other})"),
    }
}

fn tls_sentence(error: &rustls::Error) -> String {
    let sentence = match error {
        rustls::Error::InvalidCertificate(error) => return certificate::sentence(error),
        rustls::Error::AlertReceived(alert) => return alert_sentence(u8::from(*alert)),
        rustls::Error::InvalidMessage(
            InvalidMessage::CertificatePayloadTooLarge | InvalidMessage::HandshakePayloadTooLarge,
        ) => "the TLS handshake is larger than 64 KiB; shorten the certificate chain",
        rustls::Error::InvalidMessage(_)
        | rustls::Error::InappropriateMessage { .. }
        | rustls::Error::InappropriateHandshakeMessage { .. } => {
            "the receiver sent something other than TLS; check the URL's host and port"
        }
        rustls::Error::PeerIncompatible(_) => {
            "the receiver offers no TLS version or cipher that Rapport accepts; enable TLS 1.2 or 1.3"
        }
        rustls::Error::PeerMisbehaved(_) => "the receiver violated the TLS protocol; update its TLS software",
        rustls::Error::NoCertificatesPresented => "the receiver sent no certificate; install one",
        rustls::Error::DecryptError => "the receiver sent TLS data that can't be decrypted",
        rustls::Error::PeerSentOversizedRecord => "the receiver sent a TLS record that is too large",
        rustls::Error::FailedToGetCurrentTime => "the server couldn't read its clock",
        rustls::Error::FailedToGetRandomBytes => "the server couldn't get random numbers",
        _ => "the TLS connection failed",
    };
    sentence.to_owned()
}

/// The alert with which the receiver refused; the names are those of RFC 8446.
fn alert_sentence(number: u8) -> String {
    let (name, advice) = match number {
        10 => ("unexpected_message", "check its TLS software"),
        40 => ("handshake_failure", "enable TLS 1.2 or 1.3 and a current cipher"),
        42 => ("bad_certificate", "it must not ask for a client certificate"),
        48 => ("unknown_ca", "it must not ask for a client certificate"),
        49 => ("access_denied", "allow connections from this server"),
        70 => ("protocol_version", "enable TLS 1.2 or 1.3"),
        71 => ("insufficient_security", "enable a current cipher"),
        80 => ("internal_error", "check its log"),
        112 => ("unrecognized_name", "check the URL's host name"),
        116 => ("certificate_required", "it must not ask for a client certificate"),
        120 => ("no_application_protocol", "enable HTTP/1.1"),
        _ => {
            return format!("the receiver refused the TLS connection with alert {number}; check its log");
        }
    };
    format!("the receiver refused the TLS connection with alert {number} ({name}); {advice}")
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, PeerIncompatible, PeerMisbehaved};

    use super::*;

    const ADDRESS: &str = "192.0.2.7:443";

    #[test]
    fn connection_errors_read_as_sentences() {
        let table = [
            (io::ErrorKind::ConnectionRefused, Failure::Connect, "192.0.2.7:443 refused the connection; "),
            (io::ErrorKind::HostUnreachable, Failure::Connect, "no route to 192.0.2.7:443; "),
            (io::ErrorKind::TimedOut, Failure::Connect, "192.0.2.7:443 didn't answer; "),
            (io::ErrorKind::Other, Failure::Connect, "connecting to 192.0.2.7:443 failed (other error)"),
            (io::ErrorKind::AddrNotAvailable, Failure::Own, "the server can't open a connection ("),
        ];
        for (kind, failure, beginning) in table {
            let broken = Broken::connecting(ADDRESS.parse().expect("an address"), &kind.into());
            assert_eq!(broken.failure, failure, "{kind}");
            assert!(broken.error.starts_with(beginning), "{}", broken.error);
        }
        let no_files = io::Error::from_raw_os_error(24);
        let broken = Broken::connecting(ADDRESS.parse().expect("an address"), &no_files);
        assert_eq!(broken.failure, Failure::Own, "running out of files isn't the receiver's fault");
    }

    #[test]
    fn handshake_errors_read_as_sentences() {
        let tls = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let table = [
            (
                io::Error::from(io::ErrorKind::UnexpectedEof),
                Failure::Protocol,
                "the receiver closed the connection during the TLS handshake",
            ),
            (
                io::Error::from(io::ErrorKind::ConnectionReset),
                Failure::Protocol,
                "the receiver reset the connection during the TLS handshake",
            ),
            (
                tls(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)),
                Failure::Tls,
                "the receiver sent something other than TLS; check the URL's host and port",
            ),
            (
                tls(rustls::Error::AlertReceived(AlertDescription::HandshakeFailure)),
                Failure::Tls,
                "the receiver refused the TLS connection with alert 40 (handshake_failure); enable TLS 1.2 or \
                 1.3 and a current cipher",
            ),
            (
                tls(rustls::Error::AlertReceived(AlertDescription::Unknown(99))),
                Failure::Tls,
                "the receiver refused the TLS connection with alert 99; check its log",
            ),
            (
                tls(rustls::Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig)),
                Failure::Tls,
                "the receiver offers no TLS version or cipher that Rapport accepts; enable TLS 1.2 or 1.3",
            ),
            (
                tls(rustls::Error::PeerMisbehaved(PeerMisbehaved::TooMuchEarlyDataReceived)),
                Failure::Tls,
                "the receiver violated the TLS protocol; update its TLS software",
            ),
            (tls(rustls::Error::General("x".to_owned())), Failure::Tls, "the TLS connection failed"),
            (
                tls(rustls::Error::FailedToGetRandomBytes),
                Failure::Own,
                "the server couldn't get random numbers",
            ),
        ];
        for (error, failure, expected) in table {
            assert_eq!(Broken::handshake(&error), Broken::new(failure, expected));
        }
    }
}
