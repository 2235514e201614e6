//! Certificate authorities that the operator trusts in addition to the system's.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Reads the certificates from PEM files, and checks that each can be used as an authority.
pub fn load(files: &[PathBuf]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let mut authorities = Vec::new();
    for path in files {
        let cannot = || format!("{} cannot be used (--extra-ca)", path.display());
        let found = CertificateDer::pem_file_iter(path).with_context(cannot)?;
        let found: Vec<_> = found.collect::<Result<_, _>>().with_context(cannot)?;
        if found.is_empty() {
            bail!("{} contains no PEM certificate (--extra-ca)", path.display());
        }
        for certificate in found {
            RootCertStore::empty().add(certificate.clone()).with_context(cannot)?;
            authorities.push(certificate);
        }
    }
    Ok(authorities)
}
