//! The HTML pages, built on the same use cases as the API.
//!
//! A handler reads everything a page shows in one snapshot, or runs one command, and renders a typed template. The
//! pages share these modules:
//!
//! - `visitor`: the person who requests a page. `frame`: the frame of every page. `refusal`: error pages.
//! - `form`, `draft`: what was typed, and its faults. `replay`: a form that arrives twice is handled once. `flash`: a
//!   message on the next page about what was done. `origin`: only our own pages may send forms.
//! - `words/`: times, numbers and money as text. `chart`: SVG charts.
//! - `assets`: the stylesheet and the script. `live`: tells pages about changes. `streams`: limits the live streams.

mod accounts;
mod assets;
mod channels;
mod chart;
mod cookie;
mod draft;
mod flash;
mod form;
mod frame;
mod live;
mod login;
mod origin;
mod palette;
mod profile;
mod refusal;
mod replay;
mod setup;
mod stranger;
mod streams;
mod theme;
mod visitor;
mod words;

mod account;
mod campaigns;
mod clients;
mod dashboard;
mod deliveries;
pub mod imports;
mod pipeline;
mod redeliveries;
mod settings;
mod webhooks;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use rapport_app::submission::Once;
use rapport_app::{Access, App, Command, Error, Needs, Services};
use rapport_domain::member::Role;
use rapport_store::Snapshot;

use crate::hashing::Hashing;
use crate::pages::form::Form;
use crate::pages::frame::{Frame, Shown};
use crate::pages::replay::Replays;
use crate::pages::setup::Setup;
use crate::pages::streams::Streams;
use crate::pages::visitor::Visitor;
use crate::rate_limit::RateLimiter;
use crate::server::Config;

pub use refusal::Refusal;
pub use setup::SetupSecret;

const MEMBER: Needs = Needs::Role(Role::Member);
const ADMIN: Needs = Needs::Role(Role::Admin);

/// The routes of all pages.
pub fn routes(pages: Pages) -> Router {
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
        .merge(login::routes())
        .merge(profile::routes())
        .merge(settings::routes())
        .merge(palette::routes())
        .merge(theme::routes())
        .merge(live::routes())
        .merge(stranger::routes())
        .merge(setup::routes())
        .layer(from_fn_with_state(pages.clone(), replay::once))
        .layer(axum::middleware::from_fn(origin::guard))
        .with_state(pages)
        .merge(assets::routes())
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
}

impl Pages {
    pub fn new(app: App, limiter: Arc<RateLimiter>, hashing: Arc<Hashing>, config: &Config) -> Self {
        Self(Arc::new(Shared {
            app,
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
        read: impl FnOnce(&mut Snapshot) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> Result<Shown<T>, Refusal> {
        let (services, access) = (Arc::clone(self.app().services()), visitor.access());
        let found = self.app().find(&access, needs, move |snapshot| {
            let counts = frame::Counts::read(snapshot, services.now())?;
            Ok((counts, read(snapshot)?))
        });
        let found = found.await.map_err(|error| visitor.refused(error))?;
        Ok(Frame::around(found, visitor, self))
    }

    /// Runs the command of a form, once.
    async fn submit<C: Command>(
        &self,
        visitor: &Visitor,
        form: &Form,
        command: C,
    ) -> Result<C::Reply, Error> {
        let command = Once { form: form.id()?, command };
        self.app().write_from(&visitor.access(), Some(visitor.address), command).await
    }

    /// Runs a command for a person who is not logged in.
    async fn write_as<C: Command>(
        &self,
        access: &Access,
        address: IpAddr,
        command: C,
    ) -> Result<C::Reply, Error> {
        self.app().write_from(access, Some(address), command).await
    }

    /// Hashes or checks a password in the queue for expensive work.
    async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Services) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.0.hashing.slowly(Arc::clone(self.app().services()), work).await
    }
}
