//! Certificates for receivers: one that the tests' clients trust, and those that nobody should.

use std::sync::{Arc, OnceLock};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};

/// The names and addresses the receivers' certificate is for.
const CERTIFIED_NAMES: [&str; 5] = ["127.0.0.1", "::1", "localhost", "receiver.test", "*.receiver.test"];
/// Together far more than the 64 KiB that a client has to accept.
const HUGE_CHAIN: usize = 400;

/// How a receiver identifies itself over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Like all ordinary receivers.
    Trusted,
    SelfSigned,
    /// Self-signed and marked as an authority: what `openssl req -x509` creates.
    SelfSignedAuthority,
    /// A certificate for an authority instead of a server, from the trusted authority.
    AuthorityAsServer,
    UnknownAuthority,
    /// Would be trusted if the intermediate certificate were sent.
    MissingIntermediate,
    /// Expired on 2020-01-01.
    Expired,
    /// Not valid before 2100-01-01.
    NotYetValid,
    ForNames(&'static [&'static str]),
    /// For this many hosts, none of them this one.
    ForManyNames(usize),
    /// For a name that contains a NUL.
    ForNulName,
    ForNobody,
    ForClients,
    /// Signs with a key that is not the certificate's.
    ForeignKey,
    /// Sends a piece of text as its certificate.
    Malformed,
    /// Trusted, but sent with hundreds of others.
    HugeChain,
    /// Trusted, but speaks nothing newer than TLS 1.2.
    Tls12Only,
    /// Trusted, but does not speak HTTP/1.1.
    Http2Only,
    /// Trusted, but expects the client to have a certificate too.
    WantsClientCertificate,
}

impl Identity {
    /// The configuration of a server that identifies itself this way.
    pub(crate) fn server_config(self) -> ServerConfig {
        let authority = Authority::shared();
        let ordinary = || authority.issue(params(&CERTIFIED_NAMES));
        let leaf = match self {
            Self::Trusted | Self::Tls12Only | Self::Http2Only | Self::WantsClientCertificate => ordinary(),
            Self::SelfSigned => self_signed(params(&CERTIFIED_NAMES)),
            Self::SelfSignedAuthority => self_signed(authority_params(&CERTIFIED_NAMES)),
            Self::AuthorityAsServer => authority.issue(authority_params(&CERTIFIED_NAMES)),
            Self::UnknownAuthority => Authority::create().issue(params(&CERTIFIED_NAMES)),
            Self::MissingIntermediate => {
                let (mut params, key) = (authority_params(&[]), KeyPair::generate().expect("a key"));
                params.distinguished_name.push(DnType::CommonName, "Rapport test intermediate");
                params.signed_by(&key, &authority.issuer).expect("an intermediate certificate");
                issue(self::params(&CERTIFIED_NAMES), &Issuer::new(params, key))
            }
            Self::Expired => {
                let mut params = params(&CERTIFIED_NAMES);
                params.not_before = date_time_ymd(2019, 1, 1);
                params.not_after = date_time_ymd(2020, 1, 1);
                authority.issue(params)
            }
            Self::NotYetValid => {
                let mut params = params(&CERTIFIED_NAMES);
                params.not_before = date_time_ymd(2100, 1, 1);
                authority.issue(params)
            }
            Self::ForNames(names) => authority.issue(params(names)),
            Self::ForManyNames(count) => {
                let names: Vec<String> = (1..=count).map(|number| format!("{number}.example.org")).collect();
                authority.issue(params(&names.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            Self::ForNulName => {
                let mut params = params(&[]);
                let name = Ia5String::try_from("receiver\0.test").expect("ASCII");
                params.subject_alt_names = vec![SanType::DnsName(name)];
                authority.issue(params)
            }
            Self::ForNobody => authority.issue(params(&[])),
            Self::ForClients => {
                let mut params = params(&CERTIFIED_NAMES);
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
                authority.issue(params)
            }
            Self::ForeignKey => Leaf { key: ordinary().key, ..ordinary() },
            Self::Malformed => {
                let chain = vec![CertificateDer::from(b"a certificate, honestly".to_vec())];
                Leaf { chain, ..ordinary() }
            }
            Self::HugeChain => {
                let mut leaf = ordinary();
                leaf.chain = vec![leaf.chain[0].clone(); HUGE_CHAIN];
                leaf
            }
        };
        let versions =
            if self == Self::Tls12Only { &[&rustls::version::TLS12][..] } else { rustls::ALL_VERSIONS };
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .expect("protocol versions of the provider");
        let builder = if self == Self::WantsClientCertificate {
            let verifier = WebPkiClientVerifier::builder_with_provider(authority.roots(), provider());
            builder.with_client_cert_verifier(verifier.build().expect("a verifier of clients"))
        } else {
            builder.with_no_client_auth()
        };
        // Unlike a certificate given directly, one from a resolver is not checked: most of these would not pass.
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(leaf.certified_key())));
        let protocol: &[u8] = if self == Self::Http2Only { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A certificate with its chain, and a key.
struct Leaf {
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
}

impl Leaf {
    fn certified_key(self) -> CertifiedKey {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key));
        let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key that can sign");
        CertifiedKey::new(self.chain, key)
    }
}

/// The usual parameters of a server's certificate.
fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("valid names");
    params.distinguished_name.push(DnType::CommonName, "Rapport test receiver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params
}

fn authority_params(names: &[&str]) -> CertificateParams {
    let mut params = params(names);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = Vec::new();
    params.use_authority_key_identifier_extension = false;
    params
}

fn self_signed(mut params: CertificateParams) -> Leaf {
    params.use_authority_key_identifier_extension = false;
    let key = KeyPair::generate().expect("a key for a receiver");
    let certificate = params.self_signed(&key).expect("a self-signed certificate");
    Leaf { chain: vec![certificate.der().clone()], key: key.serialize_der() }
}

fn issue(params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Leaf {
    let key = KeyPair::generate().expect("a key for a receiver");
    let certificate = params.signed_by(&key, issuer).expect("a receiver's certificate");
    Leaf { chain: vec![certificate.der().clone()], key: key.serialize_der() }
}

/// A certificate with its key, as PEM files contain them.
pub struct PemFiles {
    pub certificate: String,
    pub key: String,
}

impl PemFiles {
    /// For a client of this name, from the authority that the tests trust.
    pub fn of_client(name: &str) -> Self {
        Authority::shared().client_files(name)
    }

    /// The same from an authority that nobody trusts.
    pub fn of_untrusted_client(name: &str) -> Self {
        Authority::create().client_files(name)
    }
}

/// A certificate authority and what it issued to the receivers.
pub struct Authority {
    pub pem: String,
    pub server_config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The authority that the tests' clients trust.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Authority> = OnceLock::new();
        SHARED.get_or_init(Self::create)
    }

    pub fn create() -> Self {
        let key = KeyPair::generate().expect("a key for the authority");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Rapport test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).expect("the authority's certificate");
        let issuer = Issuer::new(params, key);
        let leaf = issue(self::params(&CERTIFIED_NAMES), &issuer);
        let server_config = Arc::new(server_config(leaf));
        Self { pem: certificate.pem(), server_config, certificate: certificate.der().clone(), issuer }
    }

    /// A certificate for these hosts.
    pub fn server_files(&self, names: &[&str]) -> PemFiles {
        self.files(params(names))
    }

    fn client_files(&self, name: &str) -> PemFiles {
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.files(params)
    }

    fn files(&self, params: CertificateParams) -> PemFiles {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        PemFiles { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn issue(&self, params: CertificateParams) -> Leaf {
        issue(params, &self.issuer)
    }

    pub fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("the authority's certificate");
        Arc::new(roots)
    }
}

fn server_config(leaf: Leaf) -> ServerConfig {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(leaf.key));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("protocol versions of the provider")
        .with_no_client_auth()
        .with_single_cert(leaf.chain, key)
        .expect("a certificate that matches its key");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}
