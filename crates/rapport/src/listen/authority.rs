//! The receiver's certificate, signed by its own authority and kept for the next run.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub const CA_FILE: &str = "ca.pem";
const CERTIFICATE_FILE: &str = "certificate.pem";
const KEY_FILE: &str = "key.pem";
const NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

pub struct Authority {
    certificate: String,
    key: String,
}

/// Loads the certificate, or creates it. It is kept so that a service trusts it across restarts.
pub fn load_or_make(directory: &Path) -> anyhow::Result<Authority> {
    let [ca, certificate, key] = [CA_FILE, CERTIFICATE_FILE, KEY_FILE].map(|name| directory.join(name));
    if ca.exists() && certificate.exists() && key.exists() {
        let read =
            |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        return Ok(Authority { certificate: read(&certificate)?, key: read(&key)? });
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let made = make()?;
    write(&ca, &made.ca, 0o644)?;
    write(&certificate, &made.certificate, 0o644)?;
    write(&key, &made.key, 0o600)?;
    Ok(Authority { certificate: made.certificate, key: made.key })
}

struct Made {
    ca: String,
    certificate: String,
    key: String,
}

/// The authority's key is discarded, so it signs this one certificate and can never sign another.
fn make() -> anyhow::Result<Made> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Rapport listen authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, authority_key);
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "Rapport listen");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Made { ca: authority.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
}

fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut options = fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

impl Authority {
    pub fn server_config(&self) -> anyhow::Result<ServerConfig> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
