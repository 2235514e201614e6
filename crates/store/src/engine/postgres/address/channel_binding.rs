//! The channel binding `tls-server-end-point` (RFC 5929): a hash of the server's certificate, with which
//! both sides prove during authentication that they see the same one.

use ring::digest;
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{
    OID_HASH_SHA1, OID_NIST_HASH_SHA256, OID_NIST_HASH_SHA384, OID_NIST_HASH_SHA512, OID_PKCS1_MD5WITHRSAENC,
    OID_PKCS1_SHA1WITHRSA, OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA,
    OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, Oid,
};
use x509_parser::prelude::FromDer as _;
use x509_parser::signature_algorithm::SignatureAlgorithm;

const ECDSA_WITH_SHA1: &str = "1.2.840.10045.4.1";

/// `None` if the certificate's signature uses no hash that the standard names, such as Ed25519.
pub fn of_certificate(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let algorithm = &parsed.signature_algorithm;
    let hash = match SignatureAlgorithm::try_from(algorithm) {
        Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) => hash(parameters.hash_algorithm_oid()),
        _ => hash(&algorithm.algorithm),
    };
    hash.map(|hash| digest::digest(hash, certificate).as_ref().to_vec())
}

/// The hash of a signature. SHA-256 replaces weaker ones.
fn hash(oid: &Oid) -> Option<&'static digest::Algorithm> {
    let sha256 = [
        OID_PKCS1_MD5WITHRSAENC,
        OID_PKCS1_SHA1WITHRSA,
        OID_HASH_SHA1,
        OID_PKCS1_SHA256WITHRSA,
        OID_SIG_ECDSA_WITH_SHA256,
        OID_NIST_HASH_SHA256,
    ];
    let sha384 = [OID_PKCS1_SHA384WITHRSA, OID_SIG_ECDSA_WITH_SHA384, OID_NIST_HASH_SHA384];
    let sha512 = [OID_PKCS1_SHA512WITHRSA, OID_SIG_ECDSA_WITH_SHA512, OID_NIST_HASH_SHA512];
    if sha256.contains(oid) || oid.to_id_string() == ECDSA_WITH_SHA1 {
        Some(&digest::SHA256)
    } else if sha384.contains(oid) {
        Some(&digest::SHA384)
    } else if sha512.contains(oid) {
        Some(&digest::SHA512)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn the_hash_is_the_one_of_the_certificates_signature() {
        let table = [
            (&PKCS_ECDSA_P256_SHA256, Some(&digest::SHA256)),
            (&PKCS_ECDSA_P384_SHA384, Some(&digest::SHA384)),
            (&PKCS_ED25519, None),
        ];
        for (algorithm, expected) in table {
            let key = KeyPair::generate_for(algorithm).expect("a key");
            let certificate = CertificateParams::default().self_signed(&key).expect("a certificate");
            let expected = expected.map(|hash| digest::digest(hash, certificate.der()).as_ref().to_vec());
            assert_eq!(of_certificate(certificate.der()), expected, "{algorithm:?}");
        }
        assert_eq!(of_certificate(b"a certificate, honestly"), None);
    }

    #[test]
    fn weak_hashes_are_replaced() {
        for weak in [OID_PKCS1_MD5WITHRSAENC, OID_PKCS1_SHA1WITHRSA, OID_HASH_SHA1] {
            assert_eq!(hash(&weak), Some(&digest::SHA256), "{weak}");
        }
    }
}
