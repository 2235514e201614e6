//! The JSON API: one group of endpoints per file, each with its part of the OpenAPI document.
//!
//! A handler parses the request, runs one command or one named read, and renders the result. If parsing fails, it
//! passes on a `Problem` instead, so that the credential is verified before the caller learns what was wrong.

mod account;
mod account_changes;
mod account_export;
mod accounts;
mod activity;
mod addresses;
mod audit;
mod bounds;
mod call;
mod campaigns;
mod channels;
mod clients;
mod company;
mod conditional;
mod contact;
mod contacts;
mod conversations;
mod corrections;
mod deliveries;
pub mod deprecation;
mod digests;
mod docs;
mod erasure;
mod error_codes;
mod event_feed;
mod events;
mod exchange_rates;
mod factor_reset;
mod fields;
mod following;
mod hashing;
mod headers;
mod history;
mod imports;
mod inbound;
mod ingest;
mod ingest_rejects;
mod invitations;
mod logged;
mod lookup;
mod mails;
mod members;
mod message;
mod notes;
pub mod openapi;
mod password_reset;
mod pulse;
mod redeliveries;
mod repeat;
mod requests;
mod schemas;
mod settings;
mod sso;
mod timeline;
mod tokens;
pub mod upload;
mod upsert;
mod upsert_batch;
mod waiting;
mod webhooks;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use rapport_app::{Access, Answer, App, Command, Error, Needs, Viewer};
use rapport_domain::company::Company;
use rapport_store::Snapshot;
use utoipa_axum::router::OpenApiRouter;

use crate::api::call::Caller;
use crate::api::inbound::MailRoom;
use crate::api::repeat::InProgress;
use crate::api::waiting::Waiting;
use crate::edge::hashing::Hashing;
use crate::edge::problem::Problem;
use crate::edge::rate_limit::RateLimiter;
use crate::edge::server::Config;
use crate::shared::{AUDIT, DELETE, EXPORT, IMPORT, KEYS, MEMBERS, READ, SETTINGS, SSO, WEBHOOKS, WORK};

/// The prefix of every API path.
pub const PREFIX: &str = "/api/";
/// Paths of files, which have no trailing slash.
const FILES: [&str; 2] = [openapi::PATH, docs::STYLE_PATH];

/// All routes under `/api/`. A process describes them once, however many servers its tests start.
pub fn routes() -> Router<Api> {
    static ROUTES: LazyLock<Router<Api>> = LazyLock::new(described);
    ROUTES.clone()
}

fn described() -> Router<Api> {
    let (router, document) = documented().split_for_parts();
    let document = later(move || openapi::completed(document));
    let meta = openapi::routes(Arc::clone(&document)).merge(docs::routes(document));
    router.merge(meta).merge(schemas::routes()).merge(error_codes::routes())
}

/// What is made when it is first asked for. The documentation would take most of the time that the service needs to start.
type Later<T> = Arc<LazyLock<T, Box<dyn FnOnce() -> T + Send>>>;

fn later<T>(make: impl FnOnce() -> T + Send + 'static) -> Later<T> {
    Arc::new(LazyLock::new(Box::new(make)))
}

/// Whether a path is that of a file, which has no trailing slash.
pub fn is_file(path: &str) -> bool {
    FILES.contains(&path) || schemas::is_file(path)
}

/// The endpoints and the OpenAPI document that they describe themselves in.
fn documented() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(openapi::frame())
        .merge(upsert::routes())
        .merge(upsert_batch::routes())
        .merge(ingest::routes())
        .merge(accounts::routes())
        .merge(account::routes())
        .merge(account_export::routes())
        .merge(history::routes())
        .merge(activity::routes())
        .merge(pulse::routes())
        .merge(contacts::routes())
        .merge(contact::routes())
        .merge(notes::routes())
        .merge(corrections::routes())
        .merge(clients::routes())
        .merge(conversations::routes())
        .merge(message::routes())
        .merge(timeline::routes())
        .merge(addresses::routes())
        .merge(inbound::routes())
        .merge(lookup::routes())
        .merge(channels::routes())
        .merge(fields::routes())
        .merge(campaigns::routes())
        .merge(webhooks::routes())
        .merge(deliveries::routes())
        .merge(event_feed::routes())
        .merge(redeliveries::routes())
        .merge(erasure::routes())
        .merge(imports::routes())
        .merge(settings::routes())
        .merge(exchange_rates::routes())
        .merge(company::routes())
        .merge(sso::routes())
        .merge(ingest_rejects::routes())
        .merge(tokens::routes())
        .merge(members::routes())
        .merge(invitations::routes())
        .merge(password_reset::routes())
        .merge(factor_reset::routes())
        .merge(digests::routes())
        .merge(mails::routes())
        .merge(audit::routes())
}

/// The state that handlers share.
#[derive(Clone)]
pub struct Api(Arc<Shared>);

struct Shared {
    app: App,
    limiter: Arc<RateLimiter>,
    body_timeout: Duration,
    max_import_bytes: u64,
    hashing: Arc<Hashing>,
    mail_room: MailRoom,
    in_progress: InProgress,
    waiting: Waiting,
}

impl Api {
    pub fn new(app: App, limiter: Arc<RateLimiter>, hashing: Arc<Hashing>, config: &Config) -> Self {
        let &Config { body_timeout, max_import_bytes, .. } = config;
        let (mail_room, in_progress) = (MailRoom::default(), InProgress::default());
        let waiting = Waiting::until(config.stopping.clone());
        let shared =
            Shared { app, limiter, body_timeout, max_import_bytes, hashing, mail_room, in_progress, waiting };
        Self(Arc::new(shared))
    }

    /// How long to wait for the next part of an upload.
    fn body_timeout(&self) -> Duration {
        self.0.body_timeout
    }

    fn max_import_bytes(&self) -> u64 {
        self.0.max_import_bytes
    }

    fn app(&self) -> &App {
        &self.0.app
    }

    /// Runs a command. If it could not be parsed, verifies the caller before returning the problem.
    async fn write<C: Command>(
        &self,
        caller: &Caller,
        command: Result<C, Problem>,
    ) -> Result<C::Reply, Problem> {
        match command {
            Ok(command) => {
                let access = caller.access();
                self.settle(caller, self.app().write_from(&access, Some(caller.origin), command).await)
            }
            Err(problem) => {
                self.verify(caller, C::NEEDS).await?;
                Err(problem)
            }
        }
    }

    /// Runs a query. If it could not be parsed, verifies the caller before returning the problem.
    async fn read<Q: Send + 'static, T: Send + 'static>(
        &self,
        caller: &Caller,
        needs: Needs,
        question: Result<Q, Problem>,
        read: impl FnOnce(&mut Snapshot, &Viewer, Q) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> Result<Answer<T>, Problem> {
        match question {
            Ok(question) => {
                let access = caller.access();
                let found =
                    self.app().read(&access, needs, |snapshot, viewer| read(snapshot, viewer, question));
                self.settle(caller, found.await)
            }
            Err(problem) => {
                self.verify(caller, needs).await?;
                Err(problem)
            }
        }
    }

    /// Only verifies a caller. Returns their company.
    async fn verify(&self, caller: &Caller, needs: Needs) -> Result<Company, Problem> {
        let access: Access = caller.access();
        let found = self.app().read(&access, needs, |_, _| Ok(())).await;
        self.settle(caller, found).map(|answer| answer.company)
    }

    /// Tells the rate limiter whether the credential was valid, and converts an error for the caller.
    fn settle<T>(&self, caller: &Caller, outcome: Result<T, Error>) -> Result<T, Problem> {
        let valid = match &outcome {
            Err(Error::Unauthenticated) => Some(false),
            Ok(_)
            | Err(
                Error::Forbidden { .. }
                | Error::NotFound(_)
                | Error::Conflict { .. }
                | Error::TooMany { .. }
                | Error::Invalid(_),
            ) => Some(true),
            Err(_) => None,
        };
        if let Some(valid) = valid
            && !(valid && caller.known)
        {
            let (limiter, hash) = (&self.0.limiter, &caller.presented.hash);
            if valid {
                limiter.accept_credential(hash, self.app().services().own_limits().of(hash));
            } else {
                limiter.refuse_credential(hash, caller.origin.address, self.app().now());
            }
        }
        let Caller { presented, scheme, origin, .. } = *caller;
        outcome.map_err(|error| Problem::for_caller(error, scheme, presented, origin))
    }
}
