//! The use cases. One that writes is a command: it asks `domain` for the consequences, and writes rows, history
//! and outbox in one transaction of one company. One that reads is a function in [`read`], named after what it
//! answers.
//!
//! The JSON API, pages, imports and ingest run the same commands, so an account created by any route fires
//! the same event; the API and the pages share the reads. Nothing here knows about HTTP.

pub mod access;
pub mod account;
pub mod account_address;
pub mod address_change;
pub mod audit;
pub mod backup_report;
pub mod bulk;
pub mod cadence;
pub mod campaign;
pub mod channel;
pub mod channel_total;
pub mod command;
pub mod commits;
pub mod company;
pub mod company_deletion;
pub mod contact;
pub mod context;
pub mod conversation;
pub mod correction;
pub mod credential;
pub mod delivery;
pub mod departed;
pub mod destination;
pub mod digest;
pub mod dispatch;
pub mod encryption_key;
pub mod erasure;
mod error;
pub mod exchange_rate;
pub mod export;
pub mod failed_login;
pub mod fan_out;
pub mod fields;
pub mod full_export;
pub mod import;
pub mod inbound;
pub mod ingest;
pub mod invitation;
pub mod job_report;
mod letter;
pub mod lookup;
pub mod mail;
mod mail_limit;
pub mod mail_test;
pub mod member;
pub mod metric;
pub mod note;
mod notice;
pub mod origin;
mod outbox;
pub mod own_limit;
pub mod ownership;
pub mod passkey;
pub mod password;
pub mod password_reset;
mod patience;
pub mod person;
pub mod precondition;
pub mod proof;
pub mod read;
pub mod reading;
pub mod recovery_code;
pub mod redeliver;
pub mod redelivery;
pub mod refusal;
mod repeats;
pub mod retention;
pub mod sample;
pub mod saved_view;
pub mod second_factor;
pub mod second_step;
pub mod session;
pub mod settings;
pub mod signature;
pub mod spreadsheet;
pub mod sso;
pub mod stage_totals;
pub mod submission;
mod subscribers;
mod ticket;
pub mod totp;
pub mod upsert;
pub mod upsert_batch;
pub mod vault;
pub mod webhook;

use std::sync::Arc;
use std::time::Duration;

use rapport_domain::company::Company;
use rapport_domain::time::Time;
use rapport_store::{Across, Snapshot, Store};

pub use access::{Access, Caller, Needs};
pub use command::{Command, Context};
pub use context::{Clock, Parts, Random, Services};
pub use error::Error;
pub use mail::{MailRoute, Outside};
pub use origin::Origin;
pub use patience::{patiently, patiently_blocking};
pub use read::Viewer;
pub use vault::Vault;

/// Nodes need not agree more closely, and a clock that follows every small difference would jump around.
const CLOCK_TOLERANCE_MICROS: i64 = 1_000_000;
const CLOCK_ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// The application: commands and reads over an open store.
#[derive(Clone)]
pub struct App {
    store: Arc<Store>,
    services: Arc<Services>,
}

/// The result of a read, with what rendering it needs: the company's settings and the time.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    pub reply: T,
    pub company: Company,
    pub now: Time,
}

/// The result of a read, and who read it.
#[derive(Debug, Clone)]
pub struct Found<T> {
    pub reply: T,
    pub viewer: Viewer,
}

impl App {
    pub fn new(store: Store, parts: Parts) -> Self {
        Self { store: Arc::new(store), services: Arc::new(Services::new(parts)) }
    }

    pub fn now(&self) -> Time {
        self.services.clock.now()
    }

    /// See [`Clock::passed`].
    pub fn passed(&self) -> Duration {
        self.services.clock.passed()
    }

    /// Makes this process follow the database's clock when several nodes share it: they read each other's
    /// leases and due times.
    pub async fn follow_database_clock(&self) -> Result<(), Error> {
        let asked = self.passed();
        let clock = self.read_across(database_clock).await?;
        self.follow(clock, asked);
        Ok(())
    }

    /// The same, for the command line.
    pub fn follow_database_clock_blocking(&self) -> Result<(), Error> {
        let asked = self.passed();
        let clock = self.read_across_blocking(database_clock)?;
        self.follow(clock, asked);
        Ok(())
    }

    fn follow(&self, database: Option<Time>, asked: Duration) {
        let (Some(database), answered) = (database, self.passed()) else { return };
        let took = answered.saturating_sub(asked);
        // The clock was read at some point within that time. A slow answer is too imprecise.
        let error = i64::try_from(took.as_micros() / 2).unwrap_or(i64::MAX);
        let ahead = database.micros_since(self.now()).saturating_add(error);
        if took < CLOCK_ANSWER_LIMIT && ahead.abs() > CLOCK_TOLERANCE_MICROS {
            self.services.clock.follow(ahead);
            tracing::warn!(
                seconds = ahead / 1_000_000,
                "this machine's clock differs from the database's; using the database's"
            );
        }
    }

    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs a command in a transaction of the caller's company.
    pub async fn write<C: Command>(&self, access: &Access, command: C) -> Result<C::Reply, Error> {
        self.write_from(access, None, command).await
    }

    /// Like [`Self::write`], for a caller over the network, who is named in the audit log.
    pub async fn write_from<C: Command>(
        &self,
        access: &Access,
        origin: Option<Origin>,
        command: C,
    ) -> Result<C::Reply, Error> {
        let reply = command::submit(&self.store, &self.services, access.clone(), origin, command);
        reply.await.unwrap_or(Err(Error::Closed))
    }

    /// Like [`Self::write`], for the command line and for threads that may block.
    pub fn write_blocking<C: Command>(&self, access: &Access, command: C) -> Result<C::Reply, Error> {
        let reply = command::submit(&self.store, &self.services, access.clone(), None, command);
        reply.blocking_recv().unwrap_or(Err(Error::Closed))
    }

    /// Reads the caller's company; the credential is checked in the same snapshot.
    pub async fn read<T: Send + 'static>(
        &self,
        access: &Access,
        needs: Needs,
        read: impl FnOnce(&mut Snapshot, &Viewer) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> Result<Answer<T>, Error> {
        let Found { reply, viewer: Viewer { caller, now } } = self.find(access, needs, read).await?;
        Ok(Answer { reply, company: caller.company, now })
    }

    /// Like [`Self::read`], and also returns the caller.
    pub async fn find<T: Send + 'static>(
        &self,
        access: &Access,
        needs: Needs,
        read: impl FnOnce(&mut Snapshot, &Viewer) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> Result<Found<T>, Error> {
        let services = Arc::clone(&self.services);
        let access = access.clone();
        let found = self.store.read(access.company(), move |snapshot| {
            let now = services.clock.now();
            let caller = match access::check_one(snapshot, &services, &access, needs, now)? {
                Ok(caller) => caller,
                Err(refused) => return Ok(Err(refused)),
            };
            let viewer = Viewer { caller, now };
            let reply = read(snapshot, &viewer)?;
            Ok(Ok(Found { reply, viewer }))
        });
        found.await.unwrap_or(Err(rapport_store::Error::Closed)).map_err(settled)?
    }

    /// Reads across all companies, for the service itself and the command line.
    pub async fn read_across<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Across) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.store.read_across(read).await.unwrap_or(Err(rapport_store::Error::Closed)).map_err(settled)
    }

    pub fn read_across_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Across) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let found = self.store.read_across(read).blocking_recv();
        found.unwrap_or(Err(rapport_store::Error::Closed)).map_err(settled)
    }
}

fn database_clock(across: &mut Across) -> Result<Option<Time>, rapport_store::Error> {
    across.clock()
}

fn settled(error: rapport_store::Error) -> Error {
    Error::from(error).settled()
}
