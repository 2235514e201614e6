//! Assembles the webhook sender: its guard, its client, its place among the nodes, and the background
//! work around it.

use std::sync::Arc;

use rapport_app::App;
use rapport_jobs::client::tls_config;
use rapport_jobs::{Client, EgressProxy, Guard, Limits, Lookup, SingleSignOn};
use rapport_store::Database;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::outbound::Outbound;

/// The way to receivers, home pages and identity providers. Made before the application, which checks destinations,
/// fetches pages and lets people log in with it.
pub struct Reach {
    pub guard: Arc<Guard>,
    lookup_guard: Arc<Guard>,
    sso_guard: Arc<Guard>,
    tls: rustls::ClientConfig,
    proxy: Option<EgressProxy>,
    /// Kept connections end with the process; nothing waits for receivers to close them.
    connections: TaskTracker,
}

impl Reach {
    pub fn new(outbound: &Outbound) -> Self {
        let (guard, lookup_guard) = (Arc::new(outbound.guard()), Arc::new(outbound.lookup_guard()));
        let (sso_guard, tls) = (Arc::new(outbound.sso_guard()), tls_config(&outbound.authorities));
        let (proxy, connections) = (outbound.proxy.clone(), TaskTracker::new());
        Self { guard, lookup_guard, sso_guard, tls, proxy, connections }
    }

    pub fn lookup(&self) -> Lookup {
        Lookup::new(Arc::clone(&self.lookup_guard), self.tls.clone(), self.connections.clone())
    }

    pub fn sso(&self) -> SingleSignOn {
        SingleSignOn::new(Arc::clone(&self.sso_guard), self.tls.clone(), self.connections.clone())
    }

    fn client(self) -> Client {
        Client::new(self.guard, self.tls, Limits::default(), self.connections).through(self.proxy)
    }
}

/// Starts sending; it ends soon after `stop`.
pub async fn start(
    app: &App,
    config: &Config,
    reach: Reach,
    identity: Option<String>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), rapport_app::Error> {
    // The lock on the data directory proves that no other service sends from an embedded database.
    let alone = matches!(config.database.value.0, Database::Sqlite(_));
    let settings = rapport_jobs::Config { alone, identity, ..rapport_jobs::Config::default() };
    rapport_jobs::start(app, Arc::new(reach.client()), settings, stop.clone(), tasks).await?;
    tasks.spawn(rapport_jobs::cadence::run(app.clone(), stop.clone(), rapport_jobs::cadence::EVERY));
    tasks.spawn(rapport_jobs::redelivery::run(app.clone(), stop.clone()));
    tasks.spawn(rapport_jobs::import::run(app.clone(), stop.clone()));
    tasks.spawn(rapport_jobs::retention::run(app.clone(), stop.clone(), rapport_jobs::retention::EVERY));
    Ok(())
}
