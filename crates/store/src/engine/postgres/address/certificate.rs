//! Checks a PostgreSQL server's certificate as far as `sslmode` asks for it.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// The certificates that `sslrootcert` names.
#[derive(Debug)]
pub struct Trusted {
    certificates: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
}

impl Trusted {
    pub fn nobody() -> Self {
        Self { certificates: Vec::new(), roots: RootCertStore::empty() }
    }

    /// Fails if a certificate is malformed.
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        self.roots.add(certificate.clone())?;
        self.certificates.push(certificate);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }
}

#[derive(Debug)]
pub struct Verifier {
    /// If none, any certificate will do.
    pub trusted: Option<Trusted>,
    pub checks_name: bool,
    pub algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn check_issuer(
        &self,
        trusted: &Trusted,
        server: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        // A server's own, self-signed certificate may be in the file, as with libpq.
        if trusted.certificates.iter().any(|certificate| certificate == server) {
            return check_dates(server, now);
        }
        let verified = verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(server)?,
            &trusted.roots,
            intermediates,
            now,
            self.algorithms.all,
        );
        verified.map_err(|refusal| match refusal {
            // A trusted authority has the issuer's name but another key, so it isn't the issuer.
            Error::InvalidCertificate(CertificateError::BadSignature) => {
                CertificateError::UnknownIssuer.into()
            }
            Error::InvalidCertificate(CertificateError::Other(_)) if is_self_signed(server) => {
                CertificateError::UnknownIssuer.into()
            }
            refusal => refusal,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trusted) = &self.trusted {
            self.check_issuer(trusted, end_entity, intermediates, now)?;
        }
        if self.checks_name {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn check_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let second = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
    let (from, to) = (second(parsed.validity.not_before), second(parsed.validity.not_after));
    if now.as_secs() < from {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > to {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, parsed)| parsed.issuer() == parsed.subject())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
    use rustls::crypto::ring::default_provider;

    use super::*;

    const NOW: u64 = 1_767_225_600; // 2026-01-01

    /// What `openssl req -x509` creates: self-signed, and an authority.
    fn self_signed(first_year: i32, last_year: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["db.acme.test".to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(first_year, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().clone()
    }

    #[test]
    fn a_servers_own_certificate_may_be_the_trusted_one() {
        let (valid, other) = (self_signed(2025, 2030), self_signed(2025, 2030));
        let (old, new) = (self_signed(2020, 2021), self_signed(2030, 2031));
        let mut trusted = Trusted::nobody();
        for certificate in [&valid, &old, &new] {
            trusted.add(certificate.clone()).expect("a certificate");
        }
        let algorithms = default_provider().signature_verification_algorithms;
        let verifier = Verifier { trusted: Some(trusted), checks_name: true, algorithms };
        let verify = |certificate: &CertificateDer, name: &'static str| {
            let name = ServerName::try_from(name).expect("a name");
            let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
            verifier.verify_server_cert(certificate, &[], &name, &[], now).map(drop)
        };
        assert_eq!(verify(&valid, "db.acme.test"), Ok(()));
        assert!(matches!(
            verify(&valid, "other.acme.test"),
            Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }))
        ));
        assert_eq!(verify(&old, "db.acme.test"), Err(CertificateError::Expired.into()));
        assert_eq!(verify(&new, "db.acme.test"), Err(CertificateError::NotValidYet.into()));
        assert_eq!(verify(&other, "db.acme.test"), Err(CertificateError::UnknownIssuer.into()));
    }
}
