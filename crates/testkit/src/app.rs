//! The application on either engine, in its own database, with a clock that tests move and randomness that
//! repeats. A test reads like a sentence:
//!
//! ```no_run
//! # use rapport_testkit::{Engine, TestApp};
//! # use serde_json::json;
//! let app = TestApp::on(Engine::Sqlite);
//! app.upsert(json!({"imported_id": "crm-1", "status": "contacted"}));
//! app.clock().advance_days(1);
//! assert_eq!(app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}])).accepted, 1);
//! let globex = app.company("globex");
//! assert_eq!(globex.find("crm-1"), None);
//! ```
//!
//! Everything here may be called from plain and from async tests: the engine works on its own threads, so a
//! caller that blocks holds up nobody else.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{self, Poll, Wake, Waker};
use std::thread::{self, Thread};

use rapport_app::channel::{AddCode, CreateChannel};
use rapport_app::company::{CreateCompany, OwnerLogin};
use rapport_app::credential::CreateToken;
use rapport_app::ingest::{Ingest, Ingested};
use rapport_app::settings::PatchSettings;
use rapport_app::upsert::{Upsert, Upserted};
use rapport_app::{Access, App, Clock, Command, Context, Error, Needs, Parts, Random, Vault, Viewer};
use rapport_domain::account::{self, Account};
use rapport_domain::activity::parse_batch;
use rapport_domain::channel::{Channel, PromoCode};
use rapport_domain::company::Slug;
use rapport_domain::credential::{self, Kind, TokenRequest};
use rapport_domain::event::Event;
use rapport_domain::history::HistoryEntry;
use rapport_domain::id::{AccountId, CompanyId, PersonId};
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::right::Right;
use rapport_domain::time::Time;
use rapport_store::member::{self, NewPerson};
use rapport_store::{Database, Snapshot, Store, Tx};
use serde_json::{Map, Value, json};

use crate::database::{TestDatabase, patient};
use crate::opening;
use crate::postgres::plain;

/// Where the clock of a test starts: a Monday morning.
pub const START: &str = "2026-01-05T09:00:00Z";
/// How often a request is sent again if a loaded machine turned it away with nothing stored.
const MAX_TRIES: usize = 20;
const ENOUGH: i64 = 10_000;

/// A clock that stands still until a test moves it. Clones share the time.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<AtomicI64>);

impl Default for TestClock {
    fn default() -> Self {
        Self::at(Time::parse(START).expect("the start is a time"))
    }
}

impl TestClock {
    pub fn at(time: Time) -> Self {
        Self(Arc::new(AtomicI64::new(time.as_micros())))
    }

    pub fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }

    pub fn set(&self, time: Time) {
        self.0.store(time.as_micros(), Ordering::SeqCst);
    }

    pub fn advance_seconds(&self, seconds: i64) {
        self.set(self.now().plus_seconds(seconds));
    }

    pub fn advance_days(&self, days: i64) {
        self.set(self.now().plus_days(days));
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Self::now(self)
    }
}

/// Randomness that is the same in every run: no two calls agree, and nothing about it is secret.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for SeededRandom {
    /// SplitMix64: each step of the counter is one fresh number, whichever thread takes it.
    fn fill(&self, bytes: &mut [u8]) {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        for chunk in bytes.chunks_mut(8) {
            let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
            chunk.copy_from_slice(&mixed.to_le_bytes()[..chunk.len()]);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub const BOTH: [Self; 2] = [Self::Sqlite, Self::Postgres];
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

/// Changes the parts that a process of a test usually has.
type Furnish = Box<dyn Fn(&mut Parts) + Send + Sync>;

/// The application over an empty database with one company, `acme`, whose methods can be called on it directly.
pub struct TestApp {
    engine: Engine,
    clock: TestClock,
    acme: TestCompany,
    furnish: Furnish,
    /// The last field, so that it goes after the threads that use it.
    database: TestDatabase,
}

impl Deref for TestApp {
    type Target = TestCompany;

    fn deref(&self) -> &TestCompany {
        &self.acme
    }
}

impl TestApp {
    pub fn on(engine: Engine) -> Self {
        Self::with(engine, |_| {})
    }

    /// With other parts than usual, in this process and in every other node on its database.
    pub fn with(engine: Engine, furnish: impl Fn(&mut Parts) + Send + Sync + 'static) -> Self {
        Self::build(engine, TestClock::default(), Box::new(furnish))
    }

    /// For several applications that share a clock.
    pub fn with_clock(engine: Engine, clock: TestClock) -> Self {
        Self::with_clock_and(engine, clock, |_| {})
    }

    /// With a clock and with other parts than usual.
    pub fn with_clock_and(
        engine: Engine,
        clock: TestClock,
        furnish: impl Fn(&mut Parts) + Send + Sync + 'static,
    ) -> Self {
        Self::build(engine, clock, Box::new(furnish))
    }

    fn build(engine: Engine, clock: TestClock, furnish: Furnish) -> Self {
        // The PostgreSQL client refuses to block a thread that runs async code, so it gets its own.
        let opened = thread::scope(|scope| scope.spawn(|| open(engine)).join());
        let (store, database) = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let app = assemble(store, &clock, 1, &*furnish);
        let acme = TestCompany::create(&app, "acme");
        Self { engine, clock, acme, furnish, database }
    }

    /// Checks a rule on both engines. The last line that a failing test prints names the engine.
    pub fn on_both(rule: impl Fn(&Self)) {
        for engine in Engine::BOTH {
            eprintln!("on {engine}");
            rule(&Self::on(engine));
        }
    }

    pub fn engine(&self) -> Engine {
        self.engine
    }

    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    pub fn database(&self) -> &Database {
        &self.database.database
    }

    /// Another company in the same database.
    pub fn company(&self, slug: &str) -> TestCompany {
        TestCompany::create(self.app(), slug)
    }

    /// Another node of the service, or the command line next to it, on the same database.
    pub fn another_node(&self) -> App {
        let opened =
            thread::scope(|scope| scope.spawn(|| opening::open(&patient(self.database().clone()))).join());
        let store = opened.expect("a thread");
        assemble(store, &self.clock, 2, &*self.furnish)
    }

    /// How many rows a table has, over all companies, read from the database itself.
    pub fn rows(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {table}"))
    }

    /// Reads one number with plain SQL, past the application.
    pub fn number(&self, sql: &str) -> i64 {
        let read = || match self.database() {
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("opening the database");
                connection.query_row(sql, [], |row| row.get(0)).expect("a number")
            }
            Database::Postgres(url) => connect(url).query_one(sql, &[]).expect("a number").get(0),
        };
        thread::scope(|scope| scope.spawn(read).join()).expect("a number")
    }

    /// A connection next to the application's own, for tests that get in its way.
    pub fn postgres(&self) -> postgres::Client {
        match self.database() {
            Database::Postgres(url) => connect(url),
            Database::Sqlite(path) => panic!("{} is not a PostgreSQL database", path.display()),
        }
    }
}

fn assemble(store: Store, clock: &TestClock, seed: u64, furnish: &dyn Fn(&mut Parts)) -> App {
    let random = Arc::new(SeededRandom::new(seed));
    let mut parts = Parts::new(Arc::new(clock.clone()), random, Vault::new(&[7; 32]));
    furnish(&mut parts);
    App::new(store, parts)
}

fn connect(url: &str) -> postgres::Client {
    postgres::Client::connect(plain(url), postgres::NoTls).expect("connecting to PostgreSQL")
}

fn open(engine: Engine) -> (Store, TestDatabase) {
    let database = TestDatabase::new(engine);
    (opening::open(&patient(database.database.clone())), database)
}

/// A person who becomes a member without the mail, the link and the slow hash of a real invitation.
pub struct Hire {
    pub email: Email,
    pub name: String,
    pub role: Role,
    pub password_hash: String,
    pub is_proven: bool,
}

impl Command for Hire {
    type Reply = Member;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Member, Error> {
        let Self { email, name, role, password_hash, is_proven } = self;
        let known = member::proven_login(tx, email)?.filter(|_| *is_proven).map(|login| login.person);
        let person = known.unwrap_or_else(|| cx.id());
        if known.is_none() {
            let new = NewPerson { id: person, email, name, password_hash, is_proven: *is_proven };
            member::insert_person(tx, &new, cx.now)?;
        }
        member::insert(tx, person, *role, cx.now)?;
        member::get(tx, person)?.ok_or(Error::NotFound("member"))
    }
}

/// A person who becomes a member of another company too.
pub struct Join {
    pub person: PersonId,
    pub role: Role,
}

impl Command for Join {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        member::insert(tx, self.person, self.role, cx.now)?;
        Ok(())
    }
}

/// A company with its first token and its ingest key, used as its own systems would.
#[derive(Clone)]
pub struct TestCompany {
    app: App,
    slug: String,
    token: Access,
    ingest_key: Access,
    token_text: String,
    ingest_key_text: String,
}

impl TestCompany {
    fn create(app: &App, slug: &str) -> Self {
        let command = CreateCompany {
            slug: Slug::parse(slug).expect("a slug"),
            name: slug.to_owned(),
            owner: Email::parse(&format!("owner@{slug}.test")).expect("an address"),
            owner_name: "The Owner".to_owned(),
            // Hashing is slow on purpose, and nobody logs in with this.
            owner_login: OwnerLogin::Chosen { password_hash: "no password".to_owned() },
        };
        let created = block_on(app.write(&Access::NO_COMPANY, command)).expect("a new company");
        Self {
            app: app.clone(),
            slug: slug.to_owned(),
            token: access(Kind::ApiToken, &created.api_token),
            ingest_key: access(Kind::IngestKey, &created.ingest_key),
            token_text: created.api_token,
            ingest_key_text: created.ingest_key,
        }
    }

    pub fn app(&self) -> &App {
        &self.app
    }

    /// A member who has accepted their invitation already, with a login for this company only.
    pub fn employ(&self, email: &str, name: &str, role: Role) -> Member {
        let email = Email::parse(email).expect("an address");
        let hire = Hire {
            email,
            name: name.to_owned(),
            role,
            password_hash: "no password".to_owned(),
            is_proven: false,
        };
        block_on(self.app.write(&Access::System(self.id()), hire)).expect("a new member")
    }

    pub fn id(&self) -> CompanyId {
        self.token.company()
    }

    pub fn slug(&self) -> &str {
        &self.slug
    }

    /// The owner's token, in the form that a caller presents.
    pub fn token(&self) -> &Access {
        &self.token
    }

    pub fn ingest_key(&self) -> &Access {
        &self.ingest_key
    }

    pub fn token_text(&self) -> &str {
        &self.token_text
    }

    pub fn ingest_key_text(&self) -> &str {
        &self.ingest_key_text
    }

    /// A new token with this role.
    pub fn token_of(&self, role: Role) -> Access {
        let request = TokenRequest::of_company(format!("{} token", role.as_str()), role);
        let made = self.write(CreateToken(request));
        access(Kind::ApiToken, &made.expect("a token").text)
    }

    /// Runs a command with the owner's token.
    pub fn write<C: Command>(&self, command: C) -> Result<C::Reply, Error> {
        self.write_as(&self.token, command)
    }

    pub fn write_as<C: Command>(&self, access: &Access, command: C) -> Result<C::Reply, Error> {
        block_on(self.app.write(access, command))
    }

    /// Reads with the owner's token.
    pub fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Snapshot) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> T {
        self.view(|snapshot, _| read(snapshot))
    }

    /// Reads with the owner's token, as the owner.
    pub fn view<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Snapshot, &Viewer) -> Result<T, rapport_store::Error> + Send + 'static,
    ) -> T {
        let answer = block_on(self.app.read(&self.token, Needs::Right(Right::Read), read));
        answer.unwrap_or_else(|error| panic!("a read was refused: {error:?}")).reply
    }

    /// Upserts as the company's own system would; `project` may be left out.
    pub fn upsert(&self, body: Value) -> Upserted {
        let said = body.to_string();
        self.try_upsert(body).unwrap_or_else(|error| panic!("the upsert {said} was refused: {error:?}"))
    }

    pub fn try_upsert(&self, body: Value) -> Result<Upserted, Error> {
        let mut body = object(body);
        body.entry("project").or_insert_with(|| json!(self.slug));
        let request = account::Upsert::parse(&body)?;
        patiently(|| self.write(Upsert(request.clone())))
    }

    /// Ingests an array of events that arrive now.
    pub fn ingest(&self, events: Value) -> Ingested {
        let said = events.to_string();
        self.try_ingest(events).unwrap_or_else(|error| panic!("the batch {said} was refused: {error:?}"))
    }

    pub fn try_ingest(&self, events: Value) -> Result<Ingested, Error> {
        let body = json!({ "events": events });
        let received_at = self.app.now();
        let batch = parse_batch(body.as_object().expect("an object"), received_at);
        let batch = batch.unwrap_or_else(|error| panic!("{body} is not a batch: {error:?}"));
        let bytes = body.to_string().len();
        patiently(|| self.write_as(&self.ingest_key, Ingest { batch: batch.clone(), received_at, bytes }))
    }

    /// Changes settings.
    pub fn set(&self, settings: Value) {
        let said = settings.to_string();
        let patched = self.write(PatchSettings(object(settings)));
        patched.unwrap_or_else(|error| panic!("the settings {said} were refused: {error:?}"));
    }

    /// A new channel with these codes.
    pub fn channel(&self, name: &str, codes: &[&str]) -> Channel {
        let channel = self.write(CreateChannel { name: name.to_owned() }).expect("a new channel");
        for code in codes {
            let code = PromoCode::parse(code).expect("a promo code");
            self.write(AddCode { channel: channel.id, code, archived: false }).expect("a new code");
        }
        channel
    }

    pub fn find(&self, imported_id: &str) -> Option<Account> {
        let imported_id = imported_id.to_owned();
        self.read(move |snapshot| {
            let found = rapport_store::account::ids_by_imported_id(snapshot, &[&imported_id])?;
            let Some((_, id)) = found.into_iter().next() else { return Ok(None) };
            rapport_store::account::get(snapshot, id)
        })
    }

    /// The account with this imported_id, which must exist.
    pub fn account(&self, imported_id: &str) -> Account {
        self.find(imported_id).unwrap_or_else(|| panic!("{} has no account {imported_id}", self.slug))
    }

    /// An account's status history, oldest first.
    pub fn history(&self, account: AccountId) -> Vec<HistoryEntry> {
        let page =
            self.read(move |snapshot| rapport_store::history::of_account(snapshot, account, None, ENOUGH));
        page.items.into_iter().rev().collect()
    }

    /// An account's events, oldest first.
    pub fn events(&self, account: AccountId) -> Vec<Event> {
        self.read(move |snapshot| rapport_store::event::of_account(snapshot, account))
    }
}

fn access(kind: Kind, text: &str) -> Access {
    Access::Credential(credential::read(kind, text).expect("a well-formed credential"))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

/// "Busy" means that nothing was stored: a test on a loaded machine tries again, as any caller would.
fn patiently<T>(send: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..MAX_TRIES {
        match send() {
            Err(Error::Busy) => {}
            answer => return answer,
        }
    }
    send()
}

/// Runs futures concurrently: each is started before any is waited for. The answers are in the order given.
pub async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, answer) in running.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *answer = Some(output);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

/// Waits for a future on this thread, whatever else runs on it.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    // Inside an async test Tokio makes a future yield once its budget is used up, and here nothing renews it.
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = task::Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randomness_repeats_for_a_seed_and_never_within_it() {
        let take = |random: &SeededRandom| {
            let mut bytes = [0; 13];
            random.fill(&mut bytes);
            bytes
        };
        let (one, same, other) = (SeededRandom::new(1), SeededRandom::new(1), SeededRandom::new(2));
        let first = take(&one);
        assert_eq!(first, take(&same));
        assert_ne!(first, take(&one));
        assert_ne!(first, take(&other));
    }

    #[test]
    fn the_clock_moves_only_when_it_is_told_to() {
        let clock = TestClock::default();
        let same = clock.clone();
        assert_eq!(clock.now().to_string(), START);
        same.advance_days(2);
        same.advance_seconds(5);
        assert_eq!(clock.now().to_string(), "2026-01-07T09:00:05Z");
    }

    #[tokio::test]
    async fn an_app_works_in_async_tests_too() {
        for engine in Engine::BOTH {
            let app = TestApp::on(engine);
            let created = app.upsert(json!({"imported_id": "crm-1"}));
            assert!(created.created, "on {engine}");
            assert_eq!(app.rows("account"), 1, "on {engine}");
            assert_eq!(app.account("crm-1").id, created.account.id, "on {engine}");
            assert_eq!(app.company("globex").find("crm-1"), None, "on {engine}");
        }
    }
}
