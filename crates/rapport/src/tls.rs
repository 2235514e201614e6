//! The certificate of the service's own https, read again when its files change.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, ServerConfig};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::config::Config;

const CHECK_EVERY: Duration = Duration::from_secs(2);
const PROTOCOL: &[u8] = b"http/1.1";

/// The certificate in use. New connections get the newest one.
#[derive(Debug)]
pub struct Certificate {
    files: Files,
    current: RwLock<Arc<CertifiedKey>>,
    /// The state of the files when they were last read.
    seen: Mutex<Stamps>,
}

#[derive(Debug, Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// Changes whenever a file is written or replaced. None if the file cannot be found.
type Stamps = [Option<(u64, u64, u64, i64, i64)>; 2];

impl Certificate {
    /// Reads the files of the configuration. None if it has none, so that the service speaks plain HTTP.
    pub fn load(config: &Config) -> anyhow::Result<Option<Arc<Self>>> {
        let Some((cert, key)) = config.tls_files() else { return Ok(None) };
        let files = Files { cert: cert.to_owned(), key: key.to_owned() };
        let seen = files.stamps();
        let current = RwLock::new(Arc::new(files.read()?));
        Ok(Some(Arc::new(Self { files, current, seen: Mutex::new(seen) })))
    }

    pub fn server_config(self: &Arc<Self>) -> anyhow::Result<Arc<ServerConfig>> {
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = vec![PROTOCOL.to_owned()];
        Ok(Arc::new(config))
    }

    /// Looks at the files regularly until `stop`.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = interval(CHECK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            let certificate = Arc::clone(&self);
            let _ = tokio::task::spawn_blocking(move || certificate.refresh()).await;
        }
    }

    /// Uses the files if they changed. If they are broken, for example because only one of the two has been replaced
    /// yet, the old certificate stays in use.
    fn refresh(&self) {
        let stamps = self.files.stamps();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == stamps {
            return;
        }
        *seen = stamps;
        match self.files.read() {
            Ok(read) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
                tracing::info!(file = %self.files.cert.display(), "certificate loaded again");
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "failed to load the certificate again; the old one stays in use");
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Files {
    fn stamps(&self) -> Stamps {
        let stamp = |metadata: Metadata| {
            (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
        };
        [&self.cert, &self.key].map(|path| path.metadata().ok().map(stamp))
    }

    fn read(&self) -> anyhow::Result<CertifiedKey> {
        let Self { cert, key } = self;
        let chain = CertificateDer::pem_file_iter(cert);
        let chain = chain.and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| unusable(cert, "--tls-cert", "certificate", error))?;
        if chain.is_empty() {
            return Err(unusable(cert, "--tls-cert", "certificate", pem::Error::NoItemsFound));
        }
        let private = PrivateKeyDer::from_pem_file(key);
        let private =
            private.map_err(|error| unusable(key, "--tls-key", "unencrypted private key", error))?;
        match CertifiedKey::from_der(chain, private, &default_provider()) {
            Ok(both) => Ok(both),
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                bail!("{} is not the key of the certificate in {} (--tls-key)", key.display(), cert.display())
            }
            Err(Error::InvalidCertificate(error)) => {
                bail!("{} cannot be used (--tls-cert): {error:?}", cert.display())
            }
            Err(error) => Err(error).with_context(|| format!("{} cannot be used (--tls-key)", key.display())),
        }
    }
}

fn unusable(path: &Path, option: &str, what: &str, error: pem::Error) -> anyhow::Error {
    let path = path.display();
    match error {
        pem::Error::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            anyhow::anyhow!("{path} does not exist ({option})")
        }
        pem::Error::Io(error) => anyhow::anyhow!("{path} cannot be read ({option}): {error}"),
        pem::Error::NoItemsFound => anyhow::anyhow!("{path} contains no {what} in PEM format ({option})"),
        // The error may quote the file, which contains a key.
        _ => anyhow::anyhow!("{path} is not a valid PEM file ({option})"),
    }
}
