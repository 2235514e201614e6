//! TLS to PostgreSQL: reads the files that the address names, and makes the handshake for the library.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use super::certificate::{Trusted, Verifier};
use super::{channel_binding, sentence};

/// The protocol's registered name, as libpq 17 sends it.
const PROTOCOL: &[u8] = b"postgresql";
/// Access that a private key's file must not give; a file of root may be readable by its group.
const OPEN_TO_OTHERS: u32 = 0o077;
const OPEN_TO_OTHERS_BUT_READERS: u32 = 0o037;

/// Where trusted certificates come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    System,
    File(PathBuf),
}

/// What the address says about certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub root: Option<Root>,
    pub checks_name: bool,
    /// Certificate and key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// Makes TLS connections for the library.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    checks_name: bool,
}

impl Tls {
    pub fn load(settings: &Settings) -> Result<Self, String> {
        let provider = Arc::new(default_provider());
        let verifier = Verifier {
            trusted: settings.root.as_ref().map(trusted).transpose()?,
            checks_name: settings.checks_name,
            algorithms: provider.signature_verification_algorithms,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &settings.client {
            Some((certificate, key)) => {
                let (chain, private) = (client_certificate(certificate)?, client_key(key)?);
                builder.with_client_auth_cert(chain, private).map_err(|error| {
                    let (certificate, key) = (certificate.display(), key.display());
                    format!("the certificate {certificate} (sslcert) and the key {key} (sslkey) cannot be used: {error}")
                })?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), checks_name: settings.checks_name })
    }
}

fn trusted(root: &Root) -> Result<Trusted, String> {
    let mut trusted = Trusted::nobody();
    match root {
        Root::System => {
            // The system's list may contain certificates that cannot be read; the others count.
            for certificate in rustls_native_certs::load_native_certs().certs {
                let _ = trusted.add(certificate);
            }
            if trusted.is_empty() {
                return Err("the system has no certificate authorities (sslrootcert=system); install \
                            ca-certificates, or name a file"
                    .to_owned());
            }
        }
        Root::File(path) => {
            for certificate in certificates(path, "sslrootcert")? {
                trusted.add(certificate).map_err(|error| {
                    format!("a certificate in {} cannot be used (sslrootcert): {error}", path.display())
                })?;
            }
        }
    }
    Ok(trusted)
}

fn client_certificate(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates(path, "sslcert")
}

fn certificates(path: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let unusable = |error| format!("the file {shown} cannot be used ({option}): {error}");
    let found = CertificateDer::pem_file_iter(path).map_err(unusable)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(unusable)?;
    if found.is_empty() {
        return Err(format!("the file {shown} contains no PEM certificate ({option})"));
    }
    Ok(found)
}

fn client_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let about =
        fs::metadata(path).map_err(|error| format!("the file {shown} cannot be used (sslkey): {error}"))?;
    let forbidden = if about.uid() == 0 { OPEN_TO_OTHERS_BUT_READERS } else { OPEN_TO_OTHERS };
    if about.permissions().mode() & forbidden != 0 {
        return Err(format!("other users have access to the private key {shown} (sslkey); run chmod 600"));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|_| {
        format!("the file {shown} contains no private key in PEM format, or an encrypted one (sslkey)")
    })
}

/// A failed handshake, as a sentence.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = Failure;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Failure> {
        Ok(Handshake { tls: self.clone(), name: ServerName::try_from(host.to_owned()).ok() })
    }
}

pub struct Handshake {
    tls: Tls,
    /// `None` if no certificate could be for the host.
    name: Option<ServerName<'static>>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<TlsStream, Failure>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            // Without a check of the name, any name will do.
            let anyone = || ServerName::from(std::net::IpAddr::from([0, 0, 0, 0]));
            let name = self.name.or_else(|| (!self.tls.checks_name).then(anyone));
            let name = name
                .ok_or_else(|| Failure("the host isn't a name that a certificate could have".to_owned()))?;
            let connector = TlsConnector::from(self.tls.config);
            let stream = connector
                .connect(name, socket)
                .await
                .map_err(|error| Failure(sentence::of_handshake(&error)))?;
            let certificates = stream.get_ref().1.peer_certificates();
            let binding = certificates
                .and_then(|all| all.first())
                .and_then(|first| channel_binding::of_certificate(first));
            Ok(TlsStream { stream, binding })
        })
    }
}

/// An encrypted connection.
pub struct TlsStream {
    stream: tokio_rustls::client::TlsStream<Socket>,
    binding: Option<Vec<u8>>,
}

impl tokio_postgres::tls::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        self.binding.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
