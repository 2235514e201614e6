//! The HTML pages, built on the same use cases as the API.
//!
//! A handler asks one named read for everything a page shows, or runs one command, and renders a typed template.
//!
//! - `kit/`: what pages are made of: frame, forms and their faults, messages, error pages.
//! - `words/`: times, numbers and money as text. `chart/`: SVG charts.
//! - `shell/`: what surrounds the pages in a browser: assets, live updates, palette, theme.
//! - `entry/`: for people who are not logged in: the first run, login, and links from mails.
//! - One folder for each area. `rules`: what each of their routes needs.

mod chart;
mod kit;
mod words;

mod account;
mod accounts;
mod campaigns;
mod channels;
mod clients;
mod dashboard;
mod deliveries;
mod entry;
pub mod imports;
mod pipeline;
mod profile;
mod redeliveries;
pub mod rules;
mod settings;
mod shell;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use rapport_app::read::frame;
use rapport_app::submission::Once;
use rapport_app::{Access, App, Command, Error, Needs, Origin, Services, Viewer};
use rapport_domain::id::FormId;
use rapport_store::Snapshot;

use crate::edge::hashing::Hashing;
use crate::edge::rate_limit::RateLimiter;
use crate::edge::server::Config;
use crate::pages::entry::setup::Setup;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Shown};
use crate::pages::kit::replay::Replays;
use crate::pages::kit::visitor::Visitor;
use crate::pages::shell::streams::Streams;
use crate::shared::{
    ACCOUNT_DATA, AUDIT, COMPANY, DELETE, EXPORT, IMPORT, KEYS, LOGIN, MEMBERS, READ, SETTINGS, SSO,
    WEBHOOKS, WORK,
};

pub use entry::setup::SetupSecret;
pub use kit::navigation::around as with_navigation;
pub use kit::origin::is_own_path;
pub use kit::refusal::Refusal;

/// The routes of all pages.
pub fn routes(pages: Pages) -> Router {
    areas()
        .layer(from_fn_with_state(pages.clone(), kit::replay::once))
        .layer(axum::middleware::from_fn(kit::origin::guard))
        .with_state(pages)
        .merge(shell::assets::routes())
}

/// The routes of every area, each with its rule in `rules`.
fn areas() -> Router<Pages> {
    Router::new()
        .merge(account::routes())
        .merge(clients::routes())
        .merge(campaigns::routes())
        .merge(accounts::routes())
        .merge(channels::routes())
        .merge(dashboard::routes())
        .merge(pipeline::routes())
        .merge(deliveries::routes())
        .merge(redeliveries::routes())
        .merge(webhooks::routes())
        .merge(imports::routes())
        .merge(profile::routes())
        .merge(settings::routes())
        .merge(entry::routes())
        .merge(shell::routes())
}

/// The state that the pages share.
#[derive(Clone)]
pub struct Pages(Arc<Shared>);

struct Shared {
    app: App,
    limiter: Arc<RateLimiter>,
    hashing: Arc<Hashing>,
    body_timeout: Duration,
    max_import_bytes: u64,
    replays: Replays,
    setup: Setup,
    streams: Streams,
    /// Tells this process from others, which count their own commits.
    process: FormId,
}

impl Pages {
    pub fn new(app: App, limiter: Arc<RateLimiter>, hashing: Arc<Hashing>, config: &Config) -> Self {
        let process = app.services().id(app.now());
        Self(Arc::new(Shared {
            app,
            process,
            limiter,
            hashing,
            body_timeout: config.body_timeout,
            max_import_bytes: config.max_import_bytes,
            replays: Replays::default(),
            setup: Setup::new(config.setup.clone()),
            streams: Streams::new(config.max_streams),
        }))
    }

    fn app(&self) -> &App {
        &self.0.app
    }

    /// Whether the service is reached over https, so that cookies are restricted to https.
    fn is_secure(&self) -> bool {
        self.app().services().outside().base_url.starts_with("https://")
    }

    /// Reads the data of a page and its frame in one snapshot.
    async fn show<T: Send + 'static>(
        &self,
        visitor: &Visitor,
        needs: Needs,
        read: impl FnOnce(&mut Snapshot, &Viewer) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> Result<Shown<T>, Refusal> {
        let access = visitor.access();
        let version = self.version(visitor);
        let found = self.app().find(&access, needs, move |snapshot, viewer| {
            Ok((frame::counts(snapshot, viewer)?, read(snapshot, viewer)?))
        });
        let found = found.await.map_err(|error| visitor.refused(error))?;
        visitor.is_known(&found.viewer.caller);
        let mut shown = Frame::around(found, visitor, self);
        shown.frame.version = version;
        Ok(shown)
    }

    /// Stands for what this process has committed for the visitor's company so far.
    fn version(&self, visitor: &Visitor) -> String {
        let number = self.app().services().commits().number(visitor.session.company);
        format!("{}.{number}", self.0.process)
    }

    /// Runs the command of a form, once.
    async fn submit<C: Command>(
        &self,
        visitor: &Visitor,
        form: &Form,
        command: C,
    ) -> Result<C::Reply, Error> {
        let command = Once { form: form.id()?, command };
        self.app().write_from(&visitor.access(), Some(visitor.origin), command).await
    }

    /// Runs a command that no form asked for, or for a person who is not logged in.
    async fn write_as<C: Command>(
        &self,
        access: &Access,
        origin: Origin,
        command: C,
    ) -> Result<C::Reply, Error> {
        self.app().write_from(access, Some(origin), command).await
    }

    /// Hashes or checks a password in the queue for expensive work.
    async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Services) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.0.hashing.slowly(Arc::clone(self.app().services()), work).await
    }
}
