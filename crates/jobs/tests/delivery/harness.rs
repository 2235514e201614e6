//! Shared by these tests: the application, a sender that trusts the test receivers, and helpers that let a
//! test read as a sentence: given a webhook, when an event is caused, then this is recorded.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use rapport_app::ingest::{Ingest, Ingested};
use rapport_app::job_report::Job;
use rapport_app::redeliver::Redeliver;
use rapport_app::upsert::Upsert;
use rapport_app::webhook::{DeleteWebhook, DisableWebhook, EnableWebhook, RotateSecret, TestWebhook};
use rapport_app::{App, Command, Error, Needs, Parts, Vault};
use rapport_domain::activity::parse_batch;
use rapport_domain::delivery::{Delivery, State};
use rapport_domain::destination::{AddressPolicy, Refusal};
use rapport_domain::id::{DeliveryId, WebhookId};
use rapport_domain::right::Right;
use rapport_domain::time::Time;
use rapport_domain::webhook::{Held, Switch, Webhook};
use rapport_domain::{account, destination::Destination};
use rapport_jobs::guard::{BoxFuture, ResolveError, Resolver};
use rapport_jobs::{Client, Config, EgressProxy, Guard, Limits};
use rapport_store::delivery::KeptAttempt;
use rapport_store::{Database, Faults, Snapshot, delivery, webhook};
use rapport_testkit::{
    Engine, ReceivedRequest, Receiver, SeededRandom, TestApp, TestClock, block_on, create_webhook,
    patch_webhook,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long anything may take on a loaded machine before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL_EVERY: Duration = Duration::from_millis(2);
/// For all tests except those of deadlines: neither a loaded machine nor a response that a test holds back for
/// several waits of `PATIENCE` is a failure of the receiver.
const PATIENT: Limits = Limits { connect: Duration::from_mins(5), total: Duration::from_mins(10) };
/// Short, so that receivers that never answer are given up soon.
pub const HASTY: Limits = Limits { connect: Duration::from_secs(1), total: Duration::from_secs(1) };
/// The key of the testkit's vault.
const VAULT_KEY: [u8; 32] = [7; 32];
const MAX_TRIES: usize = 20;

/// Polls until there is a result; `what` says what was waited for.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(since.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(POLL_EVERY);
    }
}

/// Name resolution that a test controls, from one moment to the next.
#[derive(Default, Clone)]
pub struct Names(Arc<Mutex<HashMap<String, Resolved>>>);

type Resolved = Result<Vec<IpAddr>, ResolveError>;

impl Names {
    pub fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        self.0.lock().unwrap().insert(name.to_owned(), Ok(addresses));
    }

    pub fn fail(&self, name: &str, error: ResolveError) {
        self.0.lock().unwrap().insert(name.to_owned(), Err(error));
    }
}

impl Resolver for Names {
    fn resolve(&self, host: String) -> BoxFuture<'static, Resolved> {
        let known = self.0.lock().unwrap().get(&host).cloned();
        let unknown = || Err(ResolveError::NotFound(format!("{host} isn't a name of this test")));
        let answer = known.unwrap_or_else(unknown);
        Box::pin(async move { answer })
    }
}

/// Options a test can change.
#[derive(Clone)]
pub struct Options {
    pub limits: Limits,
    /// Networks that may be dialled although they aren't public.
    pub allowed: &'static [&'static str],
    pub names: Names,
    pub slots: usize,
    /// Faults in the sender's own process.
    pub faults: Option<Faults>,
    /// The place that every node of the test runs from, one after the other.
    pub identity: Option<&'static str>,
    /// The proxy that requests go through.
    pub proxy: Option<EgressProxy>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: PATIENT,
            allowed: &["127.0.0.0/8"],
            names: Names::default(),
            slots: Config::default().slots,
            faults: None,
            identity: None,
            proxy: None,
        }
    }
}

impl Options {
    /// For receivers that never answer.
    pub fn hasty() -> Self {
        Self { limits: HASTY, ..Self::default() }
    }

    fn guard(&self) -> Arc<Guard> {
        let allowed = self.allowed.iter().map(|network| network.parse().expect("a network")).collect();
        Arc::new(Guard::new(AddressPolicy { allowed }, Arc::new(self.names.clone())))
    }
}

/// A webhook and its secret.
#[derive(Debug, Clone)]
pub struct Hook {
    pub id: WebhookId,
    pub secret: String,
}

/// The application with a sender on its database. Events are caused through the sender's own process.
pub struct Sending {
    node: Option<Node>,
    options: Options,
    accounts_made: Cell<u32>,
    nodes_made: Cell<u64>,
    canary: OnceCell<(Receiver, Hook)>,
    /// Its own application has no sender, like the command line. Declared last, because dropping it deletes
    /// its files.
    test: TestApp,
}

impl Sending {
    pub fn with(engine: Engine, options: Options) -> Self {
        let mut sending = Self::without_sender(engine, options);
        sending.start();
        sending
    }

    pub fn without_sender(engine: Engine, options: Options) -> Self {
        let guard = options.guard();
        let test = TestApp::with(engine, move |parts| parts.destinations = Arc::clone(&guard) as _);
        Self {
            node: None,
            options,
            accounts_made: Cell::new(0),
            nodes_made: Cell::new(0),
            canary: OnceCell::new(),
            test,
        }
    }

    /// Checks a rule on both engines; the last line a failing test prints names the engine.
    pub fn on_both(rule: impl Fn(&mut Self)) {
        Self::on_both_with(Options::default(), rule);
    }

    pub fn on_both_with(options: Options, rule: impl Fn(&mut Self)) {
        for engine in Engine::BOTH {
            eprintln!("on {engine}");
            rule(&mut Self::with(engine, options.clone()));
        }
    }

    pub fn clock(&self) -> &TestClock {
        self.test.clock()
    }

    pub fn now(&self) -> Time {
        self.clock().now()
    }

    pub fn test(&self) -> &TestApp {
        &self.test
    }

    /// The sender's application; without a sender, the command line's.
    pub fn app(&self) -> &App {
        self.node.as_ref().map_or_else(|| self.test.app(), |node| &node.app)
    }

    // Nodes.

    /// Starts another sending process besides the current one.
    pub fn another_node(&self) -> Node {
        self.another_node_by(self.clock())
    }

    /// The same, with its own clock.
    pub fn another_node_by(&self, clock: &TestClock) -> Node {
        let seed = self.nodes_made.get() + 100;
        self.nodes_made.set(self.nodes_made.get() + 1);
        Node::start(&self.test, &self.options, clock, seed)
    }

    /// Makes nodes started from now on dial no network that isn't public.
    pub fn allow_nothing(&mut self) {
        self.options.allowed = &[];
    }

    /// Makes nodes started from now on run from another place.
    pub fn run_from(&mut self, place: &'static str) {
        self.options.identity = Some(place);
    }

    pub fn start(&mut self) {
        assert!(self.node.is_none(), "a sender is already running");
        self.node = Some(self.another_node());
    }

    /// See [`Node::sweep`].
    #[track_caller]
    pub fn sweep(&self) {
        self.node.as_ref().expect("a sender is running").sweep();
    }

    /// Stops cleanly: attempts in progress end, waiting deliveries are given back.
    pub fn stop(&mut self) {
        self.node.take().expect("a sender is running").stop();
    }

    /// Stops immediately, wherever it is.
    pub fn kill(&mut self) {
        self.node.take().expect("a sender is running").kill();
    }

    pub fn restart(&mut self) {
        self.stop();
        self.start();
    }

    // Webhooks.

    /// Creates a webhook for `account.created` and `account.status_changed`.
    pub fn webhook(&self, url: &str) -> Hook {
        self.webhook_for(url, &["account.created", "account.status_changed"])
    }

    pub fn webhook_for(&self, url: &str, events: &[&str]) -> Hook {
        let body = json!({ "url": url, "events": events });
        let create = create_webhook(self.app(), &body);
        let made = self.write(|| create.clone()).expect("a new webhook");
        Hook { id: made.webhook.id, secret: made.secret }
    }

    /// The check the API makes before it creates or edits a webhook.
    pub fn check_destination(&self, url: &str) -> Result<(), Refusal> {
        let destination = Destination::parse(url)?;
        block_on(self.app().services().check_destination(destination)).map(|_| ())
    }

    pub fn patch(&self, hook: &Hook, body: Value) -> Webhook {
        let patch = patch_webhook(self.app(), hook.id, &body);
        self.write(|| patch.clone()).expect("the edit")
    }

    pub fn rotate(&self, hook: &Hook) -> Hook {
        let made = self.write(|| RotateSecret(hook.id)).expect("a new secret");
        Hook { id: hook.id, secret: made.secret }
    }

    pub fn disable(&self, hook: &Hook) {
        self.write(|| DisableWebhook(hook.id)).expect("the switch");
    }

    pub fn enable(&self, hook: &Hook, held: Held) -> Result<Webhook, Error> {
        self.write(|| EnableWebhook { id: hook.id, held })
    }

    pub fn delete(&self, hook: &Hook) {
        self.write(|| DeleteWebhook(hook.id)).expect("the deletion");
    }

    /// Presses Test.
    pub fn send_test(&self, hook: &Hook) -> DeliveryId {
        self.write(|| TestWebhook(hook.id)).expect("a test").id
    }

    pub fn redeliver(&self, id: DeliveryId) -> Result<Delivery, Error> {
        self.write(|| Redeliver(id))
    }

    pub fn webhook_now(&self, hook: &Hook) -> Webhook {
        let id = hook.id;
        self.read(move |snapshot| webhook::get(snapshot, id)).expect("the webhook")
    }

    pub fn streak(&self, hook: &Hook) -> i64 {
        self.webhook_now(hook).failure_streak
    }

    /// How many deliveries wait in the database.
    pub fn waiting(&self, hook: &Hook) -> i64 {
        let id = hook.id;
        self.read(move |snapshot| delivery::waiting_count(snapshot, id, Time::from_micros(0), 10_000))
    }

    /// Waits until this many attempts in a row have failed.
    #[track_caller]
    pub fn wait_for_streak(&self, hook: &Hook, streak: i64) {
        let what = format!("a streak of {streak} failures");
        eventually(&what, || (self.streak(hook) == streak).then_some(()));
    }

    /// Causes failing events until a webhook is auto-disabled, while the clock stands still.
    #[track_caller]
    pub fn fail_until_disabled(&self, hook: &Hook) {
        for failure in self.streak(hook) + 1..=20 {
            self.create_account();
            self.wait_for_streak(hook, failure);
        }
        assert_eq!(self.webhook_now(hook).switch, Switch::AutoDisabled { at: self.now() });
    }

    // Events.

    /// Creates an account, which causes `account.created`. Returns its imported_id.
    pub fn create_account(&self) -> String {
        self.create_account_through(self.app())
    }

    /// The same, if it may be refused.
    pub fn try_create_account(&self) -> Result<String, Error> {
        self.try_create_account_through(self.app())
    }

    /// The same, through another process on the database.
    pub fn create_account_through(&self, app: &App) -> String {
        self.try_create_account_through(app).expect("a new account")
    }

    fn try_create_account_through(&self, app: &App) -> Result<String, Error> {
        let number = self.accounts_made.get() + 1;
        self.accounts_made.set(number);
        let imported_id = format!("crm-{number}");
        let body = json!({ "project": self.test.slug(), "imported_id": imported_id });
        let request = account::Upsert::parse(body.as_object().expect("an object")).expect("an upsert");
        patiently(|| block_on(app.write(self.test.token(), Upsert(request.clone()))))?;
        Ok(imported_id)
    }

    /// The number of open deliveries and manual attempts that some node owns.
    pub fn owned(&self) -> i64 {
        self.test.number("SELECT count(*) FROM delivery WHERE state = 0 AND owner IS NOT NULL")
            + self.test.number("SELECT count(*) FROM manual_attempt WHERE owner IS NOT NULL")
    }

    /// Sends activity of several accounts in one transaction.
    pub fn ingest(&self, kind: &str, imported_ids: &[String]) -> Ingested {
        let event = |id: &String| json!({ "imported_id": id, "kind": kind });
        let body = json!({ "events": imported_ids.iter().map(event).collect::<Vec<_>>() });
        let received_at = self.now();
        let batch = parse_batch(body.as_object().expect("an object"), received_at).expect("a batch");
        let ingest = || Ingest { batch: batch.clone(), received_at, bytes: 0 };
        patiently(|| block_on(self.app().write(self.test.ingest_key(), ingest()))).expect("the batch")
    }

    /// Creates an account; returns the delivery of its `account.created` to this webhook.
    #[track_caller]
    pub fn send_event(&self, hook: &Hook) -> DeliveryId {
        self.create_account();
        self.deliveries(hook).last().expect("a delivery of the event").id
    }

    // Deliveries.

    /// A webhook's deliveries, oldest first.
    pub fn deliveries(&self, hook: &Hook) -> Vec<Delivery> {
        self.delivery_ids(hook).into_iter().map(|id| self.delivery(id)).collect()
    }

    pub fn delivery(&self, id: DeliveryId) -> Delivery {
        self.read(move |snapshot| delivery::get(snapshot, id)).expect("the delivery")
    }

    pub fn attempts(&self, id: DeliveryId) -> Vec<KeptAttempt> {
        self.read(move |snapshot| delivery::attempts(snapshot, id))
    }

    /// The one attempt of a delivery, once it is recorded.
    #[track_caller]
    pub fn only_attempt(&self, id: DeliveryId) -> KeptAttempt {
        self.wait_for_attempts(id, 1).pop().expect("an attempt")
    }

    /// Waits until a delivery has exactly this many attempts.
    #[track_caller]
    pub fn wait_for_attempts(&self, id: DeliveryId, count: usize) -> Vec<KeptAttempt> {
        let attempts = eventually(&format!("{count} attempts of a delivery"), || {
            let attempts = self.attempts(id);
            (attempts.len() >= count).then_some(attempts)
        });
        assert_eq!(attempts.len(), count, "more attempts than expected: {attempts:#?}");
        let numbers: Vec<i64> = attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (1..).take(count).collect::<Vec<_>>());
        attempts
    }

    #[track_caller]
    pub fn wait_for_state(&self, id: DeliveryId, state: State) -> Delivery {
        eventually(&format!("a delivery to be {state:?}"), || {
            Some(self.delivery(id)).filter(|delivery| delivery.state == state)
        })
    }

    #[track_caller]
    pub fn wait_for_success(&self, id: DeliveryId) -> Delivery {
        self.wait_for_state(id, State::Succeeded)
    }

    /// When an open delivery is due.
    #[track_caller]
    pub fn due_at(&self, id: DeliveryId) -> Time {
        match self.delivery(id).state {
            State::Open { next_at } => next_at,
            ended => panic!("expected an open delivery, got {ended:?}"),
        }
    }

    /// Moves the clock to the time when a delivery is due.
    #[track_caller]
    pub fn move_to_due(&self, id: DeliveryId) {
        self.clock().set(self.due_at(id));
    }

    /// Waits until the sender has checked the current database and clock, and has sent what it found.
    /// Anything not sent by then won't be sent. A test event caused by a process without a sender shows this,
    /// because only the search of the database can find it.
    #[track_caller]
    pub fn quiet(&self) {
        let (_, hook) = self.canary.get_or_init(|| {
            let receiver = Receiver::start();
            let hook = self.webhook_for(&receiver.url("/canary"), &["client.contact_due"]);
            (receiver, hook)
        });
        for _ in 0..2 {
            let test = patiently(|| self.test.write(TestWebhook(hook.id))).expect("a test");
            self.wait_for_success(test.id);
        }
    }

    pub fn write<C: Command>(&self, command: impl Fn() -> C) -> Result<C::Reply, Error> {
        patiently(|| block_on(self.app().write(self.test.token(), command())))
    }

    pub fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&mut Snapshot) -> Result<T, rapport_store::Error> + Clone + Send + 'static,
    ) -> T {
        let (app, token, needs) = (self.test.app(), self.test.token(), Needs::Right(Right::Read));
        let answer = patiently(|| {
            let read = read.clone();
            block_on(app.read(token, needs, move |snapshot, _| read(snapshot)))
        });
        answer.unwrap_or_else(|error| panic!("a read was refused: {error:?}")).reply
    }

    fn delivery_ids(&self, hook: &Hook) -> Vec<DeliveryId> {
        const OF_WEBHOOK: &str = "SELECT id FROM delivery WHERE webhook = $1 ORDER BY id";
        let webhook = hook.id.as_bytes().as_slice();
        let ids: Vec<Vec<u8>> = match self.test.database() {
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("opening the database");
                let mut statement = connection.prepare(OF_WEBHOOK).expect("a statement");
                let rows = statement.query_map([webhook], |row| row.get(0)).expect("deliveries");
                rows.collect::<Result<_, _>>().expect("deliveries")
            }
            Database::Postgres(_) => {
                let rows = self.test.postgres().query(OF_WEBHOOK, &[&webhook]).expect("deliveries");
                rows.into_iter().map(|row| row.get(0)).collect()
            }
        };
        ids.into_iter().map(|id| DeliveryId::from_bytes(id.try_into().expect("16 bytes"))).collect()
    }
}

/// "Busy" means that nothing was stored. On a loaded machine, try again as any caller would.
fn patiently<T>(send: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..MAX_TRIES {
        match send() {
            Err(Error::Busy) => {}
            answer => return answer,
        }
    }
    send()
}

/// One sending process: its own application on the database, and a runtime for its sockets.
pub struct Node {
    pub app: App,
    runtime: Option<Runtime>,
    stop: CancellationToken,
    tasks: TaskTracker,
    clock: TestClock,
}

impl Node {
    fn start(test: &TestApp, options: &Options, clock: &TestClock, seed: u64) -> Self {
        let config = rapport_store::Config {
            readers: 1,
            writers: 2,
            faults: options.faults.clone(),
            ..rapport_store::Config::new(test.database().clone())
        };
        let store = rapport_testkit::open(&config);
        let (hands, random) = (Arc::new(clock.clone()), Arc::new(SeededRandom::new(seed)));
        let guard = options.guard();
        let parts = Parts {
            destinations: Arc::clone(&guard) as _,
            ..Parts::new(hands, random, Vault::new(&VAULT_KEY))
        };
        let app = App::new(store, parts);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let client = Client::new(guard, trusting_receivers(), options.limits, tasks.clone());
        let client = Arc::new(client.through(options.proxy.clone()));
        let config = Config {
            tick: Duration::from_millis(5),
            sweep: Duration::from_millis(50),
            // For SQLite a lock on the data directory proves this.
            alone: test.engine() == Engine::Sqlite,
            slots: options.slots,
            identity: options.identity.map(str::to_owned),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(rapport_jobs::start(&app, client, config, stop.clone(), &tasks)).expect("a sender");
        Self { app, runtime: Some(runtime), stop, tasks, clock: clock.clone() }
    }

    /// Waits until this node has checked everything once more: who is alive, and what waits.
    #[track_caller]
    pub fn sweep(&self) {
        // The current run began earlier, so wait for two.
        for _ in 0..2 {
            self.clock.advance_seconds(1);
            let now = self.clock.now();
            eventually("a sweep", || {
                let reports = self.app.services().jobs().all();
                let (_, report) = reports.into_iter().find(|(job, _)| *job == Job::Deliveries)?;
                (report.last_run? >= now).then_some(())
            });
        }
    }

    pub fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        let runtime = self.runtime.as_ref().expect("a runtime");
        let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.tasks.wait()).await });
        ended.expect("the sender did not stop");
    }

    /// Aborts its tasks; unfinished work is neither completed nor given back.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(PATIENCE);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// Loads the system's certificates once, because that takes a while.
pub fn trusting_receivers() -> rustls::ClientConfig {
    static CONFIG: LazyLock<rustls::ClientConfig> = LazyLock::new(|| {
        let receiver = Receiver::start();
        let authority = CertificateDer::from_pem_slice(receiver.ca_pem().as_bytes()).expect("a certificate");
        rapport_jobs::client::tls_config(&[authority])
    });
    CONFIG.clone()
}

/// The requests a receiver got on one path, in order of arrival.
pub fn requests_to(receiver: &Receiver, path: &str) -> Vec<ReceivedRequest> {
    receiver.requests().into_iter().filter(|request| request.path == path).collect()
}

#[track_caller]
pub fn wait_for_requests_to(receiver: &Receiver, path: &str, count: usize) -> Vec<ReceivedRequest> {
    eventually(&format!("{count} requests to {path}"), || {
        Some(requests_to(receiver, path)).filter(|requests| requests.len() >= count)
    })
}

#[track_caller]
pub fn wait_for_requests(receiver: &Receiver, count: usize) -> Vec<ReceivedRequest> {
    receiver.wait_for(count, PATIENCE)
}

/// The body of a request as JSON.
pub fn payload(request: &ReceivedRequest) -> Value {
    serde_json::from_slice(&request.body).expect("the body is JSON")
}

/// Seconds between two times.
pub fn seconds(from: Time, to: Time) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few days in microseconds fit")]
    let micros = to.micros_since(from) as f64;
    micros / 1e6
}

/// The code of a conflict.
#[track_caller]
pub fn conflict<T>(answer: Result<T, Error>) -> &'static str {
    match answer {
        Ok(_) => panic!("expected a refusal, but it succeeded"),
        Err(Error::Conflict { code, .. }) => code,
        Err(other) => panic!("not a conflict: {other:?}"),
    }
}
