//! A test world for each engine, jobs made of closures, and accounts for them.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use rapport_domain::account::Account;
use rapport_domain::company::{Settings, Slug};
use rapport_domain::id::{AccountId, CompanyId};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_store::{Config, Database, Error, Job, Lane, Snapshot, Store, Tx, Verdict, company};
pub use rapport_testkit::patient;
use rapport_testkit::postgres::plain;
use rapport_testkit::{Engine, PostgresServer, TestDatabase, open};

/// Longer than any answer takes; only a missing answer reaches it.
pub const LONG: Duration = Duration::from_mins(2);

/// An open, empty database of one engine.
pub struct World {
    pub store: Store,
    pub database: Database,
}

/// Runs a test on each engine, each time on its own database.
pub fn on_both_engines(test: impl Fn(&World)) {
    on_both_engines_with(patient, test);
}

/// The same with the usual limit on waiting, and one writer on PostgreSQL too, so that a test can block it.
pub fn with_one_writer(test: impl Fn(&World)) {
    on_both_engines_with(|database| Config { writers: 1, ..Config::new(database) }, test);
}

fn on_both_engines_with(configure: impl Fn(Database) -> Config, test: impl Fn(&World)) {
    for engine in Engine::BOTH {
        println!("on {engine}:");
        let own = TestDatabase::over_tls(engine);
        let config = configure(own.database.clone());
        test(&World { store: open(&config), database: own.database.clone() });
    }
}

/// Gives an empty database of each engine to a test that opens it itself.
pub fn for_each_database(test: impl Fn(Database)) {
    let directory = tempfile::tempdir().expect("a directory");
    println!("on SQLite:");
    test(Database::Sqlite(directory.path().join("rapport.db")));
    println!("on PostgreSQL:");
    test(Database::Postgres(fresh_postgres()));
}

/// An empty database that the store reaches over TLS, with everything verified.
pub fn fresh_postgres() -> String {
    PostgresServer::shared_over_tls().fresh_database()
}

/// A client that bypasses the store.
pub fn raw(url: &str) -> postgres::Client {
    postgres::Client::connect(plain(url), postgres::NoTls).expect("connected")
}

impl World {
    /// Runs work in a transaction and waits until it has committed. Never rejected.
    pub fn write<T: Send + 'static>(
        &self,
        company: CompanyId,
        mut work: impl FnMut(&mut Tx) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let kept = Arc::new(Mutex::new(None));
        let place = Arc::clone(&kept);
        let answer = self.submit(Lane::Outcome, company, move |tx| {
            *place.lock() = Some(work(tx)?);
            Ok(Verdict::Commit)
        });
        answer.recv_timeout(LONG).expect("an answer")?;
        Ok(kept.lock().take().expect("a result of committed work"))
    }

    /// Submits a job; the answer arrives on the channel.
    pub fn submit(
        &self,
        lane: Lane,
        company: CompanyId,
        run: impl FnMut(&mut Tx) -> Result<Verdict, Error> + Send + 'static,
    ) -> Receiver<Result<(), Error>> {
        let (job, answer) = ClosureJob::new(company, run);
        self.store.submit(lane, Box::new(job));
        answer
    }

    /// Blocks the only writer until the sender is dropped. Returns once the writer has begun.
    pub fn hold_writer(&self, company: CompanyId) -> Sender<()> {
        let (release, released) = channel::<()>();
        let (begun, has_begun) = channel();
        self.submit(Lane::Outcome, company, move |_| {
            let _ = begun.send(());
            let _ = released.recv();
            Ok(Verdict::Commit)
        });
        has_begun.recv_timeout(LONG).expect("a writer that begins");
        release
    }

    pub fn read<T: Send + 'static>(
        &self,
        company: CompanyId,
        read: impl FnOnce(&mut Snapshot) -> Result<T, Error> + Send + 'static,
    ) -> T {
        self.store.read(company, read).blocking_recv().expect("an answer").expect("a readable database")
    }

    pub fn company(&self, slug: &str) -> CompanyId {
        self.company_with(slug, Settings::default())
    }

    pub fn company_with(&self, slug: &str, settings: Settings) -> CompanyId {
        let slug = Slug::parse(slug).expect("a slug");
        let made =
            self.write(CompanyId(0), move |tx| company::create(tx, &slug, "A company", &settings, time(0)));
        made.expect("a company").expect("a free slug")
    }

    pub fn insert(&self, company: CompanyId, accounts: Vec<Account>) {
        let inserted = self.write(company, move |tx| {
            let accounts: Vec<&Account> = accounts.iter().collect();
            rapport_store::account::insert(tx, &accounts)
        });
        assert!(inserted.expect("inserted"), "an imported_id was taken");
    }

    pub fn account(&self, company: CompanyId, id: AccountId) -> Option<Account> {
        self.read(company, move |snapshot| rapport_store::account::get(snapshot, id))
    }

    /// Reads one number with plain SQL, bypassing the store.
    pub fn number(&self, sql: &str) -> i64 {
        match &self.database {
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("opened");
                connection.query_row(sql, [], |row| row.get(0)).expect("a number")
            }
            Database::Postgres(url) => raw(url).query_one(sql, &[]).expect("a number").get(0),
        }
    }

    /// Changes rows with plain SQL, bypassing the store.
    pub fn change(&self, sql: &str) {
        match &self.database {
            Database::Sqlite(path) => {
                rusqlite::Connection::open(path).expect("opened").execute_batch(sql).expect("changed");
            }
            Database::Postgres(url) => raw(url).batch_execute(sql).expect("changed"),
        }
    }

    pub fn rows_of(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {table}"))
    }
}

type Run = Box<dyn FnMut(&mut Tx) -> Result<Verdict, Error> + Send>;

/// A job without a family: it runs alone.
pub struct ClosureJob {
    company: CompanyId,
    run: Run,
    answer: Sender<Result<(), Error>>,
}

impl ClosureJob {
    pub fn new(
        company: CompanyId,
        run: impl FnMut(&mut Tx) -> Result<Verdict, Error> + Send + 'static,
    ) -> (Self, Receiver<Result<(), Error>>) {
        let (answer, answered) = channel();
        (Self { company, run: Box::new(run), answer }, answered)
    }
}

impl Job for ClosureJob {
    fn company(&self) -> CompanyId {
        self.company
    }

    fn family(&self) -> Option<TypeId> {
        None
    }

    fn run(&mut self, rest: &mut [Box<dyn Job>], tx: &mut Tx) -> Result<Verdict, Error> {
        assert!(rest.is_empty(), "a job without a family runs alone");
        (self.run)(tx)
    }

    fn settle(self: Box<Self>, outcome: Result<(), Error>) {
        let _ = self.answer.send(outcome);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

pub fn answer_of(answered: &Receiver<Result<(), Error>>) -> Result<(), Error> {
    answered.recv_timeout(LONG).expect("an answer")
}

/// Sixteen bytes that sort like the number.
pub fn bytes(number: u64) -> [u8; 16] {
    u128::from(number).to_be_bytes()
}

pub fn account_id(number: u64) -> AccountId {
    AccountId::from_bytes(bytes(number))
}

/// Seconds after a time in 2026.
pub fn time(seconds: i64) -> Time {
    Time::parse("2026-05-12T08:30:00Z").expect("a time").plus_seconds(seconds)
}

pub fn new_account(number: u64, name: &str) -> Account {
    Account::new(account_id(number), name.to_owned(), Status::Prospect, time(0))
}

pub fn imported_account(number: u64, imported_id: &str) -> Account {
    Account { imported_id: Some(imported_id.to_owned()), ..new_account(number, imported_id) }
}

/// A small generator (SplitMix64): the same numbers in every run.
pub struct Random(u64);

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = bits ^ (bits >> 31);
        usize::try_from(bits % bound as u64).unwrap_or(0)
    }

    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}
