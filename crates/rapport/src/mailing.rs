//! Assembles mail: the mailer as configured, and the background work that writes and sends mail.

use std::sync::Arc;

use anyhow::Context as _;
use rapport_app::{App, MailRoute, Outside};
use rapport_jobs::{Mailer, digest, mail};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::option_value::BaseUrl;
use crate::outbound::Outbound;

/// What use cases need to know about the outside.
pub fn outside(config: &Config, base_url: &BaseUrl) -> Outside {
    let mail_configured = config.smtp_url.value.server().is_some();
    Outside { base_url: base_url.as_str().to_owned(), mail_configured }
}

/// The mail server and the sender to show, if mail is configured.
pub fn route(config: &Config) -> Option<MailRoute> {
    config.smtp_url.value.server()?;
    let (server, from) = (config.smtp_url.value.to_string(), config.mail_from.value.as_str().to_owned());
    Some(MailRoute { server, from })
}

/// The mailer, if mail is configured.
pub fn mailer(config: &Config, outbound: &Outbound) -> anyhow::Result<Option<Arc<Mailer>>> {
    let Some(server) = config.smtp_url.value.server() else { return Ok(None) };
    let mailer = Mailer::new(server, config.mail_from.value.as_str(), &outbound.authorities);
    Ok(Some(Arc::new(mailer.context("failed to set up mail (--smtp-url, --mail-from)")?)))
}

/// Starts writing digests and sending mail. Both end soon after `stop`.
pub fn start(app: &App, mailer: Option<Arc<Mailer>>, tasks: &TaskTracker, stop: &CancellationToken) {
    tasks.spawn(mail::run(app.clone(), mailer, stop.clone(), mail::EVERY));
    tasks.spawn(digest::run(app.clone(), stop.clone(), digest::EVERY));
}
