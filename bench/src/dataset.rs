//! The data that a run starts from, written by the store's own functions while no service runs: accounts with
//! the rows that an upsert and one activity of today leave.

use std::any::{Any, TypeId};
use std::sync::mpsc;

use anyhow::{Context as _, anyhow, ensure};
use rapport_domain::account::Account;
use rapport_domain::activity::Kind;
use rapport_domain::company::{Settings, Slug};
use rapport_domain::custom_fields::CustomFields;
use rapport_domain::event::{self, Event, Occasion};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AccountId, CompanyId, IdSequence, RawId};
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Time;
use rapport_store::activity::{Count, NewActivity, Seen};
use rapport_store::{Config, Error, Job, Lane, Store, Tx, Verdict, account, activity, company, history};

use crate::chance::Chance;
use crate::measure::now;
use crate::place::Place;

const ACCOUNTS_PER_TRANSACTION: usize = 2_000;
const TRANSACTIONS_AT_ONCE: usize = 4;
const LOADING_CACHE_BYTES: usize = 512 << 20;
const FIRST_WORDS: [&str; 16] = [
    "Nordlys", "Keller", "Acorn", "Bergmann", "Castell", "Delphi", "Ember", "Falcon", "Granite", "Harbour",
    "Indigo", "Juniper", "Kestrel", "Lumen", "Meridian", "Nimbus",
];
const SECOND_WORDS: [&str; 8] =
    ["Handel", "Systems", "Logistics", "Sohn", "Partners", "Foods", "Energy", "Studio"];

/// What the load needs to know about a database.
#[derive(Debug, Clone)]
pub struct Dataset {
    pub company: CompanyId,
    pub project: Slug,
    /// By account number.
    pub ids: Vec<AccountId>,
}

/// The record id of account `number`, always of the same length.
pub fn imported_id(number: usize) -> String {
    format!("crm-{number:08}")
}

pub fn name(number: usize) -> String {
    let first = FIRST_WORDS[number % FIRST_WORDS.len()];
    let second = SECOND_WORDS[number / FIRST_WORDS.len() % SECOND_WORDS.len()];
    format!("{first} {second} {number}")
}

/// An account as an upsert would have created it.
pub fn account(id: AccountId, imported_id: String, name: String, now: Time) -> Account {
    let mut account = Account::new(id, name, Status::Prospect, now);
    account.imported_id = Some(imported_id);
    account.custom_fields = CustomFields::from_stored(fields(SEATS));
    account
}

/// The seats of a new account.
pub const SEATS: usize = 7;

/// The custom fields of every account.
pub fn fields(seats: usize) -> String {
    format!(r#"{{"plan":"pro","region":"eu-north","seats":{seats}}}"#)
}

/// Fresh ids, as the service makes them.
pub struct Ids {
    sequence: IdSequence,
    chance: Chance,
}

impl Ids {
    pub fn new(seed: u64) -> Self {
        Self { sequence: IdSequence::default(), chance: Chance::new(seed) }
    }

    pub fn next<T: From<RawId>>(&mut self, now: Time) -> T {
        self.sequence.next(now, self.chance.bytes())
    }
}

/// Loads `accounts` accounts into an existing company.
pub fn load(place: &Place, project: &str, accounts: usize) -> anyhow::Result<Dataset> {
    load_with(place, project, accounts, &|_, _| {})
}

/// The same, each account adjusted by its number.
pub fn load_with(
    place: &Place,
    project: &str,
    accounts: usize,
    adjust: &dyn Fn(usize, &mut Account),
) -> anyhow::Result<Dataset> {
    let loader = Loader::open(place, project)?;
    let mut ids = Ids::new(0x10ad);
    let mut dataset = Dataset {
        company: loader.company,
        project: loader.project.clone(),
        ids: Vec::with_capacity(accounts),
    };
    let numbers: Vec<usize> = (0..accounts).collect();
    let batches = numbers.chunks(ACCOUNTS_PER_TRANSACTION).map(|numbers| {
        let batch = Batch::make(numbers, &loader.project, &mut ids, adjust);
        dataset.ids.extend(batch.accounts.iter().map(|account| account.id));
        move |tx: &mut Tx| batch.write(tx)
    });
    loader.write_all(batches)?;
    loader.close();
    place.settle()?;
    Ok(dataset)
}

/// Writes to one company through the store, while no service runs.
pub struct Loader {
    store: Store,
    pub company: CompanyId,
    pub project: Slug,
}

impl Loader {
    pub fn open(place: &Place, project: &str) -> anyhow::Result<Self> {
        let config = Config { page_cache_bytes: LOADING_CACHE_BYTES, ..Config::new(place.database.clone()) };
        let store = Store::open(&config).map_err(|error| anyhow!("opening the database to load: {error}"))?;
        let companies =
            store.read_across(company::list).blocking_recv()?.map_err(|error| anyhow!("{error}"))?;
        let found = companies.into_iter().find(|company| company.slug.as_str() == project);
        let found = found.with_context(|| format!("no company {project}"))?;
        Ok(Self { store, company: found.id, project: found.slug })
    }

    /// Runs each as a transaction, a few at a time.
    pub fn write_all<W>(&self, transactions: impl Iterator<Item = W>) -> anyhow::Result<()>
    where
        W: FnMut(&mut Tx) -> Result<(), Error> + Send + 'static,
    {
        let (done, ended) = mpsc::channel::<Result<(), Error>>();
        let mut under_way = 0;
        let wait = || ended.recv().context("the store ended")?.map_err(|error| anyhow!("loading: {error}"));
        for work in transactions {
            if under_way == TRANSACTIONS_AT_ONCE {
                wait()?;
                under_way -= 1;
            }
            let job = LoadJob { company: self.company, work, done: done.clone() };
            // The lane that never turns anything away.
            self.store.submit(Lane::Outcome, Box::new(job));
            under_way += 1;
        }
        (0..under_way).try_for_each(|_| wait())
    }

    pub fn close(self) {
        self.store.close();
    }
}

struct LoadJob<W> {
    company: CompanyId,
    work: W,
    done: mpsc::Sender<Result<(), Error>>,
}

impl<W: FnMut(&mut Tx) -> Result<(), Error> + Send + 'static> Job for LoadJob<W> {
    fn company(&self) -> CompanyId {
        self.company
    }

    /// A family runs without a savepoint, under which thousands of rows per statement would cost SQLite dearly.
    fn family(&self) -> Option<TypeId> {
        Some(TypeId::of::<Self>())
    }

    fn run(&mut self, _: &mut [Box<dyn Job>], tx: &mut Tx) -> Result<Verdict, Error> {
        (self.work)(tx).map(|()| Verdict::Commit)
    }

    fn settle(self: Box<Self>, outcome: Result<(), Error>) {
        let _ = self.done.send(outcome);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Accounts with everything that belongs to them.
struct Batch {
    accounts: Vec<Account>,
    history: Vec<HistoryEntry>,
    events: Vec<Event>,
}

impl Batch {
    fn make(numbers: &[usize], project: &Slug, ids: &mut Ids, adjust: &dyn Fn(usize, &mut Account)) -> Self {
        let now = now();
        let mut batch = Self { accounts: Vec::new(), history: Vec::new(), events: Vec::new() };
        for &number in numbers {
            let mut account = account(ids.next(now), imported_id(number), name(number), now);
            adjust(number, &mut account);
            batch.history.push(HistoryEntry {
                id: ids.next(now),
                account: account.id,
                from: None,
                to: account.status,
                source: Source::Upsert,
                actor: Actor::System,
                note: None,
                at: now,
                happened_at: None,
            });
            let occasion = Occasion { id: ids.next(now), now, project };
            batch.events.push(event::account_created(occasion, &account, Source::Upsert));
            batch.accounts.push(account);
        }
        batch
    }

    fn write(&self, tx: &mut Tx) -> Result<(), Error> {
        let accounts: Vec<&Account> = self.accounts.iter().collect();
        if !account::insert(tx, &accounts)? {
            return Err(Error::Fault("an account already exists".to_owned()));
        }
        history::insert(tx, &self.history)?;
        rapport_store::event::insert(tx, &self.events)?;
        self.write_activity(tx)
    }

    fn write_activity(&self, tx: &mut Tx) -> Result<(), Error> {
        let zone = Settings::default().time_zone;
        let seen_at = |account: &Account| account.last_seen_at.unwrap_or(account.created_at);
        let facts = || self.accounts.iter().map(|account| (account.id, seen_at(account)));
        let events = facts().map(|(account, at)| NewActivity {
            account,
            occurred_at: at,
            received_at: at,
            kind: Kind::AppOpened.as_str(),
            feature: None,
            metadata: None,
        });
        activity::insert(tx, &events.collect::<Vec<_>>())?;
        let seen = facts().map(|(account, at)| Seen { account, first: at, last: at, day: at.day_in(&zone) });
        activity::see(tx, &seen.collect::<Vec<_>>())?;
        let counts = facts().map(|(account, at)| Count {
            account,
            day: at.day_in(&zone),
            feature: "",
            count: 1,
            last_used_at: at,
        });
        activity::count(tx, &counts.collect::<Vec<_>>())
    }
}

/// Checks that the load left the expected number of rows in each table.
pub fn expect_loaded(place: &Place, accounts: usize) -> anyhow::Result<()> {
    for table in ["account", "status_history", "event", "activity", "account_seen", "activity_count"] {
        let rows = place.count(&format!("SELECT count(*) FROM {table}"))?;
        ensure!(rows == i64::try_from(accounts)?, "{rows} rows in {table} after loading {accounts} accounts");
    }
    Ok(())
}
