//! The parts of the configuration that outbound requests need.

use std::sync::Arc;

use rapport_domain::destination::AddressPolicy;
use rapport_jobs::{EgressProxy, Guard, SystemResolver};
use rustls::pki_types::CertificateDer;

use crate::config::{Config, Setting};
use crate::extra_ca;
use crate::option_value::Network;

/// Loaded before anything starts, so that a mistake shows immediately.
pub struct Outbound {
    /// Where webhooks may be sent.
    webhooks: AddressPolicy,
    /// Which sites may be looked up.
    lookups: AddressPolicy,
    /// Where companies may have their identity provider.
    providers: AddressPolicy,
    pub authorities: Vec<CertificateDer<'static>>,
    /// The way that webhooks take, if not straight.
    pub proxy: Option<EgressProxy>,
}

impl Outbound {
    pub fn load(config: &Config) -> anyhow::Result<Self> {
        let (webhooks, lookups) = (policy(&config.allow_destination), policy(&config.allow_lookup));
        let providers = policy(&config.allow_sso);
        let authorities = extra_ca::load(&config.extra_ca.value)?;
        let proxy = config.egress_proxy.value.proxy().cloned();
        Ok(Self { webhooks, lookups, providers, authorities, proxy })
    }

    /// The guard for webhooks.
    pub fn guard(&self) -> Guard {
        Guard::new(self.webhooks.clone(), Arc::new(SystemResolver))
    }

    /// The guard for lookups by domain. Admins choose where webhooks go, but every member can look up a domain and
    /// sees what its page says.
    pub fn lookup_guard(&self) -> Guard {
        Guard::new(self.lookups.clone(), Arc::new(SystemResolver))
    }

    /// The guard for single sign-on. A company's owners choose its provider, and anyone can make us ask it.
    pub fn sso_guard(&self) -> Guard {
        Guard::new(self.providers.clone(), Arc::new(SystemResolver))
    }
}

fn policy(networks: &Setting<Vec<Network>>) -> AddressPolicy {
    AddressPolicy { allowed: networks.value.iter().map(|network| network.0).collect() }
}

#[cfg(test)]
mod tests {
    use rapport_domain::destination::Destination;

    use super::*;
    use crate::options::Options;

    #[tokio::test]
    async fn each_option_opens_its_own_way_only() {
        let network = |text: &str| Some(vec![text.parse().unwrap()]);
        let options = Options {
            allow_destination: network("10.0.0.0/8"),
            allow_lookup: network("127.0.0.1"),
            allow_sso: network("192.168.7.0/24"),
            ..Options::default()
        };
        let outbound = Outbound::load(&Config::load(options, &|_| None).unwrap()).unwrap();
        let guards = [outbound.guard(), outbound.lookup_guard(), outbound.sso_guard()];
        for (url, is_open) in [
            ("https://10.0.0.1/", [true, false, false]),
            ("https://127.0.0.1/", [false, true, false]),
            ("https://192.168.7.1/", [false, false, true]),
            ("https://192.168.0.1/", [false, false, false]),
            ("https://203.0.114.1/", [true, true, true]),
        ] {
            let destination = Destination::parse(url).unwrap();
            for (guard, is_open) in guards.iter().zip(is_open) {
                assert_eq!(guard.addresses(&destination).await.is_ok(), is_open, "{url}");
            }
        }
    }
}
