//! What the code that starts the service supplies to its commands: time, randomness, and the ways out. Tests
//! supply their own.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use rapport_domain::destination::{Destination, Refusal};
use rapport_domain::id::{CompanyId, CredentialId, IdSequence, RawId, SessionId};
use rapport_domain::relying_party::NoPasskeys;
use rapport_domain::sender_check::Relay;
use rapport_domain::session::{Limits, Session};
use rapport_domain::time::Time;
use tokio::sync::Notify;

use crate::backup_report::BackupReport;
use crate::commits::Commits;
use crate::destination::{DestinationCheck, Judged, LiteralsOnly};
use crate::dispatch::Sender;
use crate::job_report::JobReports;
use crate::lookup::{FetchError, Fetched, HomePages, NoHomePages};
use crate::mail::{MailRoute, Outside};
use crate::metric;
use crate::own_limit::OwnLimits;
use crate::passkey::RelyingParty;
use crate::repeats::Repeats;
use crate::sso::provider::{NoProviders, Providers};
use crate::subscribers::Subscribers;
use crate::vault::Vault;

pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Time;

    /// Time elapsed since an arbitrary start, for measuring. It never goes back, whatever happens to `now`.
    /// A clock that tests set by hand derives it from `now`.
    fn passed(&self) -> Duration {
        Duration::from_micros(self.now().as_micros().unsigned_abs())
    }

    /// Follows a shared clock from now on, which is this far ahead of `now` (or behind it).
    fn follow(&self, ahead_micros: i64) {
        let _ = ahead_micros;
    }
}

/// A source of secret randomness.
pub trait Random: Send + Sync + 'static {
    fn fill(&self, bytes: &mut [u8]);
}

/// The parts of a process that its commands use. Everything is there before the first command runs.
pub struct Parts {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub vault: Vault,
    /// Checks new destinations: the guard that also checks them at each attempt.
    pub destinations: Arc<dyn DestinationCheck>,
    /// Fetches home pages, through a guard of its own.
    pub home_pages: Arc<dyn HomePages>,
    /// Talks to companies' identity providers, through a guard of its own.
    pub providers: Arc<dyn Providers>,
    /// How the service is reached, and whether it can send mail.
    pub outside: Outside,
    /// The server that mail goes through, if any.
    pub mail_route: Option<MailRoute>,
    /// The relay that checks the senders of inbound mail, if any.
    pub trusted_relay: Option<Relay>,
}

impl Parts {
    /// The parts of a process that reaches nobody: it checks only literal addresses, strictly, fetches no
    /// pages, asks no providers and sends no mail.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>, vault: Vault) -> Self {
        Self {
            clock,
            random,
            vault,
            destinations: Arc::new(LiteralsOnly),
            home_pages: Arc::new(NoHomePages),
            providers: Arc::new(NoProviders),
            outside: Outside::default(),
            mail_route: None,
            trusted_relay: None,
        }
    }
}

/// The services available to every command.
pub struct Services {
    pub(crate) clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ids: Mutex<IdSequence>,
    used: Mutex<HashMap<CredentialId, (CompanyId, Time)>>,
    seen: Mutex<HashMap<SessionId, (CompanyId, Time)>>,
    own_limits: OwnLimits,
    commits: Commits,
    /// The only part that comes later: a sender owns deliveries as a node of the database, and gets its number
    /// by a command.
    sender: OnceLock<Arc<dyn Sender>>,
    destinations: Arc<dyn DestinationCheck>,
    cadence: Arc<Notify>,
    fan_out: Arc<Notify>,
    subscribers: Arc<Subscribers>,
    home_pages: Arc<dyn HomePages>,
    providers: Arc<dyn Providers>,
    vault: Vault,
    outside: Outside,
    passkeys: Result<RelyingParty, NoPasskeys>,
    mail_written: Arc<Notify>,
    mail_route: Option<MailRoute>,
    trusted_relay: Option<Relay>,
    jobs: JobReports,
    backups: BackupReport,
    repeats: Repeats,
    figures: QueueFigures,
}

/// What the queue for changes is measured with: looked up once, because every change counts.
pub(crate) struct QueueFigures {
    pub queue_wait: metrics::Histogram,
    pub rejected: metrics::Counter,
}

impl Services {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { clock, random, vault, destinations, .. } = parts;
        let Parts { home_pages, providers, outside, mail_route, trusted_relay, .. } = parts;
        Self {
            clock,
            random,
            ids: Mutex::default(),
            used: Mutex::default(),
            seen: Mutex::default(),
            own_limits: OwnLimits::default(),
            commits: Commits::default(),
            sender: OnceLock::new(),
            destinations,
            cadence: Arc::default(),
            fan_out: Arc::default(),
            subscribers: Arc::default(),
            home_pages,
            providers,
            vault,
            passkeys: RelyingParty::of(&outside.base_url),
            outside,
            mail_written: Arc::default(),
            mail_route,
            trusted_relay,
            jobs: JobReports::default(),
            backups: BackupReport::default(),
            repeats: Repeats::default(),
            figures: QueueFigures {
                queue_wait: metric::STORE_QUEUE_WAIT.histogram([]),
                rejected: metric::STORE_REJECTED.counter([]),
            },
        }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// What the audit log recorded during the last minute and need not record again.
    pub(crate) fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.random.fill(&mut bytes);
        bytes
    }

    /// A new id that sorts after every earlier one of this process.
    pub fn id<T: From<RawId>>(&self, now: Time) -> T {
        let random = self.random();
        self.ids.lock().next(now, random)
    }

    /// Starts handing committed deliveries to a sender. Without one they wait in the database.
    pub fn set_sender(&self, sender: Arc<dyn Sender>) {
        let _ = self.sender.set(sender);
    }

    pub fn sender(&self) -> Option<Arc<dyn Sender>> {
        self.sender.get().cloned()
    }

    /// Whether a webhook may point there.
    pub async fn check_destination(&self, destination: Destination) -> Result<Judged, Refusal> {
        Judged::by(self.destinations.as_ref(), destination).await
    }

    /// Notified after a commit that may make a client due.
    pub fn cadence_changes(&self) -> &Arc<Notify> {
        &self.cadence
    }

    /// Notified after a commit of an event that still has webhooks to fan out to.
    pub fn fan_out_continues(&self) -> &Arc<Notify> {
        &self.fan_out
    }

    pub(crate) fn subscribers(&self) -> &Arc<Subscribers> {
        &self.subscribers
    }

    pub async fn home_page(&self, page: &Destination) -> Result<Fetched, FetchError> {
        self.home_pages.fetch(page).await
    }

    pub(crate) fn providers(&self) -> &dyn Providers {
        self.providers.as_ref()
    }

    pub(crate) fn figures(&self) -> &QueueFigures {
        &self.figures
    }

    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// This service as passkeys know it, or why it can't offer them.
    pub fn passkeys(&self) -> Result<&RelyingParty, NoPasskeys> {
        self.passkeys.as_ref().map_err(|reason| *reason)
    }

    pub fn mail_route(&self) -> Option<&MailRoute> {
        self.mail_route.as_ref()
    }

    pub fn trusted_relay(&self) -> Option<&Relay> {
        self.trusted_relay.as_ref()
    }

    /// The reports of this process's background jobs.
    pub fn jobs(&self) -> &JobReports {
        &self.jobs
    }

    /// The scheduled backups of this process.
    pub fn backups(&self) -> &BackupReport {
        &self.backups
    }

    /// Notified when this process commits a mail.
    pub fn mail_written(&self) -> &Arc<Notify> {
        &self.mail_written
    }

    /// Notes that a credential was used. The note is stored now and then, not at every request.
    pub(crate) fn note_use(&self, company: CompanyId, credential: CredentialId, now: Time) {
        self.used.lock().insert(credential, (company, now));
    }

    /// The limits that tokens have of their own.
    pub fn own_limits(&self) -> &OwnLimits {
        &self.own_limits
    }

    /// Notes that a session was used. The note is stored once the previous one is getting old.
    pub(crate) fn note_session(&self, company: CompanyId, limits: Limits, session: &Session, now: Time) {
        if now >= session.last_seen_at.plus_seconds(limits.seen_seconds()) {
            self.seen.lock().insert(session.id, (company, now));
        }
    }

    /// Returns the sessions used since the last call.
    pub fn drain_sessions(&self) -> Vec<(CompanyId, SessionId, Time)> {
        self.seen.lock().drain().map(|(session, (company, at))| (company, session, at)).collect()
    }

    /// Notifies listeners of this process's commits.
    pub fn commits(&self) -> &Commits {
        &self.commits
    }

    /// Returns the credentials used since the last call.
    pub fn drain_uses(&self) -> Vec<(CompanyId, CredentialId, Time)> {
        self.used.lock().drain().map(|(credential, (company, at))| (company, credential, at)).collect()
    }
}
