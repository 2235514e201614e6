//! The parts of the configuration that outbound requests need.

use std::sync::Arc;

use rapport_domain::destination::AddressPolicy;
use rapport_jobs::{Guard, SystemResolver};
use rustls::pki_types::CertificateDer;

use crate::config::Config;
use crate::extra_ca;

/// Loaded before anything starts, so that a mistake shows immediately.
pub struct Outbound {
    pub policy: AddressPolicy,
    pub authorities: Vec<CertificateDer<'static>>,
}

impl Outbound {
    pub fn load(config: &Config) -> anyhow::Result<Self> {
        let allowed = config.allow_destination.value.iter().map(|network| network.0).collect();
        let authorities = extra_ca::load(&config.extra_ca.value)?;
        Ok(Self { policy: AddressPolicy { allowed }, authorities })
    }

    pub fn guard(&self) -> Guard {
        Guard::new(self.policy.clone(), Arc::new(SystemResolver))
    }
}
