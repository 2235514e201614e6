//! Assembles the webhook sender: its guard, its client, its place among the nodes, and the background
//! work around it.

use std::sync::Arc;

use rapport_app::App;
use rapport_jobs::client::tls_config;
use rapport_jobs::{Client, Guard, Limits, Lookup, SystemResolver};
use rapport_store::Database;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::outbound::Outbound;

/// Starts sending; it ends soon after `stop`.
pub async fn start(
    app: &App,
    config: &Config,
    outbound: &Outbound,
    identity: Option<String>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), rapport_app::Error> {
    let guard = Arc::new(Guard::new(outbound.policy.clone(), Arc::new(SystemResolver)));
    app.services().set_destination_check(Arc::clone(&guard) as _);
    // Kept connections end with the process; nothing waits for receivers to close them.
    let connections = TaskTracker::new();
    let tls = tls_config(&outbound.authorities);
    let lookup = Lookup::new(Arc::clone(&guard), tls.clone(), connections.clone());
    app.services().set_home_pages(Arc::new(lookup));
    let client = Client::new(guard, tls, Limits::default(), connections);
    // The lock on the data directory proves that no other service sends from an embedded database.
    let alone = matches!(config.database.value.0, Database::Sqlite(_));
    let settings = rapport_jobs::Config { alone, identity, ..rapport_jobs::Config::default() };
    rapport_jobs::start(app, Arc::new(client), settings, stop.clone(), tasks).await?;
    tasks.spawn(rapport_jobs::cadence::run(app.clone(), stop.clone(), rapport_jobs::cadence::EVERY));
    tasks.spawn(rapport_jobs::redelivery::run(app.clone(), stop.clone()));
    tasks.spawn(rapport_jobs::import::run(app.clone(), stop.clone()));
    tasks.spawn(rapport_jobs::retention::run(app.clone(), stop.clone(), rapport_jobs::retention::EVERY));
    Ok(())
}
