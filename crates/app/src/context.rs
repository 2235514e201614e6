//! Time and randomness, supplied by the code that starts the service; tests supply their own.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use rapport_domain::destination::{Destination, Refusal};
use rapport_domain::id::{CompanyId, CredentialId, IdSequence, RawId, SessionId};
use rapport_domain::session::Session;
use rapport_domain::time::Time;
use tokio::sync::Notify;

use crate::commits::Commits;
use crate::destination::{DestinationCheck, Judged, LiteralsOnly};
use crate::dispatch::Sender;
use crate::job_report::JobReports;
use crate::lookup::{FetchError, Fetched, HomePages};
use crate::mail::{MailRoute, Outside};
use crate::vault::Vault;

/// The precision with which a session's last use is known.
const SEEN_SECONDS: i64 = 5 * 60;

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

/// The services available to every command.
pub struct Services {
    pub(crate) clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ids: Mutex<IdSequence>,
    used: Mutex<HashMap<CredentialId, (CompanyId, Time)>>,
    seen: Mutex<HashMap<SessionId, (CompanyId, Time)>>,
    commits: Commits,
    sender: OnceLock<Arc<dyn Sender>>,
    destinations: OnceLock<Arc<dyn DestinationCheck>>,
    cadence: Arc<Notify>,
    fan_out: Arc<Notify>,
    home_pages: OnceLock<Arc<dyn HomePages>>,
    vault: Vault,
    outside: OnceLock<Outside>,
    mail_written: Arc<Notify>,
    mail_route: OnceLock<MailRoute>,
    jobs: JobReports,
}

impl Services {
    pub(crate) fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>, vault: Vault) -> Self {
        Self {
            clock,
            random,
            ids: Mutex::default(),
            used: Mutex::default(),
            seen: Mutex::default(),
            commits: Commits::default(),
            sender: OnceLock::new(),
            destinations: OnceLock::new(),
            cadence: Arc::default(),
            fan_out: Arc::default(),
            home_pages: OnceLock::new(),
            vault,
            outside: OnceLock::new(),
            mail_written: Arc::default(),
            mail_route: OnceLock::new(),
            jobs: JobReports::default(),
        }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
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

    /// Has new destinations checked by the guard that also checks them at each attempt.
    pub fn set_destination_check(&self, check: Arc<dyn DestinationCheck>) {
        let _ = self.destinations.set(check);
    }

    /// Whether a webhook may point there. Without a configured check, only literal addresses are checked,
    /// strictly.
    pub async fn check_destination(&self, destination: Destination) -> Result<Judged, Refusal> {
        match self.destinations.get() {
            Some(check) => Judged::by(check.as_ref(), destination).await,
            None => Judged::by(&LiteralsOnly, destination).await,
        }
    }

    /// Notified after a commit that may make a client due.
    pub fn cadence_changes(&self) -> &Arc<Notify> {
        &self.cadence
    }

    /// Notified after a commit of an event that still has webhooks to fan out to.
    pub fn fan_out_continues(&self) -> &Arc<Notify> {
        &self.fan_out
    }

    /// Has home pages fetched through the guard that also protects deliveries.
    pub fn set_home_pages(&self, home_pages: Arc<dyn HomePages>) {
        let _ = self.home_pages.set(home_pages);
    }

    /// Fetches a home page; fails if no fetcher is set.
    pub async fn home_page(&self, page: &Destination) -> Result<Fetched, FetchError> {
        match self.home_pages.get() {
            Some(home_pages) => home_pages.fetch(page).await,
            None => Err(FetchError::Own("this process can't fetch pages".to_owned())),
        }
    }

    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Sets, once, how the service is reached and whether it can send mail.
    pub fn set_outside(&self, outside: Outside) {
        let _ = self.outside.set(outside);
    }

    /// If unset: the default address, and no mail.
    pub fn outside(&self) -> &Outside {
        self.outside.get_or_init(Outside::default)
    }

    /// Sets, once, the server that mail goes through, if any.
    pub fn set_mail_route(&self, route: MailRoute) {
        let _ = self.mail_route.set(route);
    }

    pub fn mail_route(&self) -> Option<&MailRoute> {
        self.mail_route.get()
    }

    /// The reports of this process's background jobs.
    pub fn jobs(&self) -> &JobReports {
        &self.jobs
    }

    /// Notified when this process commits a mail.
    pub fn mail_written(&self) -> &Arc<Notify> {
        &self.mail_written
    }

    /// Notes that a credential was used. The note is stored now and then, not at every request.
    pub(crate) fn note_use(&self, company: CompanyId, credential: CredentialId, now: Time) {
        self.used.lock().insert(credential, (company, now));
    }

    /// Notes that a session was used. The note is stored once the previous one is getting old.
    pub(crate) fn note_session(&self, company: CompanyId, session: &Session, now: Time) {
        if now >= session.last_seen_at.plus_seconds(SEEN_SECONDS) {
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
