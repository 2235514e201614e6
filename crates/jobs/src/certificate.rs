//! Verifies receivers' certificates exactly as webpki does, and gives better reasons for refusals: it
//! recognizes self-signed certificates and describes problems in plain words.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};

/// How many of a certificate's names an error lists.
const MAX_LISTED_NAMES: usize = 3;
/// The longest possible DNS name.
const MAX_NAME_BYTES: usize = 253;

/// A refused certificate that names itself as its issuer. webpki reports an unknown issuer or an authority's
/// certificate instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the certificate is self-signed")]
pub struct SelfSigned;

/// Leaves every decision to webpki, and only adds the reason for a refusal.
#[derive(Debug)]
pub struct Verifier(pub Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        verified.map_err(|refusal| match refusal {
            rustls::Error::InvalidCertificate(error)
                if is_about_issuer(&error) && is_self_signed(end_entity) =>
            {
                CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()
            }
            // A trusted authority has the issuer's name but another key, so it isn't the issuer.
            rustls::Error::InvalidCertificate(CertificateError::BadSignature) => {
                CertificateError::UnknownIssuer.into()
            }
            refusal => refusal,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn is_about_issuer(error: &CertificateError) -> bool {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => true,
        CertificateError::Other(OtherError(inner)) => {
            matches!(inner.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
        }
        _ => false,
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}

/// What is wrong with a certificate, and what to do about it.
pub fn sentence(error: &CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate expired on {}; renew it", day(*not_after))
        }
        CertificateError::Expired => "the certificate has expired; renew it".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("the certificate isn't valid before {}; check its dates", day(*not_before))
        }
        CertificateError::NotValidYet => "the certificate isn't valid yet; check its dates".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            wrong_host(&expected.to_str(), presented)
        }
        CertificateError::NotValidForName => {
            "the certificate is for another host; use one that names this host".to_owned()
        }
        other => fixed_sentence(other).to_owned(),
    }
}

fn fixed_sentence(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer => {
            "the certificate was issued by an unknown authority; send the whole chain, or have the authority \
             added with --extra-ca"
        }
        CertificateError::BadEncoding => "the certificate is malformed; replace it",
        CertificateError::Revoked => "the certificate was revoked; replace it",
        CertificateError::BadSignature => {
            "a signature doesn't match the certificate; check that the certificate and its key belong together"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate isn't meant for servers; use one that allows server authentication"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
        | CertificateError::UnhandledCriticalExtension => {
            "the certificate uses an algorithm or extension that Rapport doesn't support; replace it"
        }
        CertificateError::Other(OtherError(inner)) if inner.is::<SelfSigned>() => {
            "the certificate is self-signed; use one issued by an authority (a private one can be added with \
             --extra-ca)"
        }
        CertificateError::Other(OtherError(inner)) => match inner.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "the certificate belongs to an authority, not to a server; use a server certificate"
            }
            Some(webpki::Error::EndEntityUsedAsCa) => {
                "the certificate was issued by a server, not by an authority; replace it"
            }
            Some(webpki::Error::NameConstraintViolation) => {
                "the certificate's authority may not issue certificates for this host; replace it"
            }
            Some(
                webpki::Error::PathLenConstraintViolated
                | webpki::Error::MaximumPathDepthExceeded
                | webpki::Error::MaximumPathBuildCallsExceeded
                | webpki::Error::MaximumSignatureChecksExceeded
                | webpki::Error::MaximumNameConstraintComparisonsExceeded,
            ) => "the certificate chain is too long; shorten it",
            Some(webpki::Error::UnsupportedCertVersion) => {
                "the certificate isn't in version 3 of the X.509 format; replace it"
            }
            _ => "the certificate is invalid; replace it",
        },
        _ => "the certificate is invalid; replace it",
    }
}

fn wrong_host(expected: &str, presented: &[String]) -> String {
    let names: Vec<&str> = presented.iter().filter_map(|name| readable_name(name)).collect();
    let (listed, others) = names.split_at(names.len().min(MAX_LISTED_NAMES));
    let for_whom = match (listed, others.len()) {
        ([], _) => return format!("the certificate doesn't name {expected}; use one that does"),
        (listed, 0) => listed.join(", "),
        (listed, more) => format!("{} and {more} more", listed.join(", ")),
    };
    format!("the certificate is for {for_whom}, not for {expected}; use one that names this host")
}

/// A certificate's name as webpki lists it, such as `DnsName("example.org")`, if a person can read it. The
/// receiver wrote it, so it may contain anything, even a NUL, which PostgreSQL doesn't store.
fn readable_name(listed: &str) -> Option<&str> {
    let quoted = listed.strip_prefix("DnsName(").or_else(|| listed.strip_prefix("IpAddress("))?;
    let name = quoted.strip_suffix(')')?.trim_matches('"');
    let is_readable =
        (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_readable.then_some(name)
}

fn day(time: UnixTime) -> String {
    let timestamp =
        i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let Some(timestamp) = timestamp else { return "a day past the year 9999".to_owned() };
    timestamp.to_zoned(TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn other(error: webpki::Error) -> CertificateError {
        CertificateError::Other(OtherError(Arc::new(error)))
    }

    #[test]
    fn each_refusal_reads_as_a_sentence() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let table = [
            (
                CertificateError::ExpiredContext { time: at(0), not_after: at(1_793_491_200) },
                "the certificate expired on 2026-11-01; renew it",
            ),
            (
                CertificateError::NotValidYetContext { time: at(0), not_before: at(1_793_491_200) },
                "the certificate isn't valid before 2026-11-01; check its dates",
            ),
            (
                CertificateError::ExpiredContext { time: at(0), not_after: at(u64::MAX) },
                "the certificate expired on a day past the year 9999; renew it",
            ),
            (
                other(webpki::Error::CaUsedAsEndEntity),
                "the certificate belongs to an authority, not to a server; use a server certificate",
            ),
            (other(webpki::Error::MalformedExtensions), "the certificate is invalid; replace it"),
            (
                CertificateError::Other(OtherError(Arc::new(SelfSigned))),
                "the certificate is self-signed; use one issued by an authority (a private one can be added \
                 with --extra-ca)",
            ),
            (CertificateError::ApplicationVerificationFailure, "the certificate is invalid; replace it"),
        ];
        for (error, expected) in table {
            assert_eq!(sentence(&error), expected);
        }
    }

    #[test]
    fn a_wrong_host_lists_a_few_names_that_can_be_read() {
        let table: [(&[&str], &str); 4] = [
            (
                &["DnsName(\"example.org\")", "IpAddress(192.0.2.1)"],
                "the certificate is for example.org, 192.0.2.1, not for hooks.acme.test; use one that names \
                 this host",
            ),
            (
                &["DnsName(\"a\")", "DnsName(\"b\")", "DnsName(\"c\")", "DnsName(\"d\")", "DnsName(\"e\")"],
                "the certificate is for a, b, c and 2 more, not for hooks.acme.test; use one that names this \
                 host",
            ),
            (
                &["DnsName(\"a\0b\")", "DnsName(\"two words\")", "DirectoryName", "Unsupported(0x00)"],
                "the certificate doesn't name hooks.acme.test; use one that does",
            ),
            (&[], "the certificate doesn't name hooks.acme.test; use one that does"),
        ];
        for (presented, expected) in table {
            let presented: Vec<String> = presented.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(wrong_host("hooks.acme.test", &presented), expected);
        }
    }
}
