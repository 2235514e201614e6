//! Shared by these tests: the application, a sweep, and helpers that let a test read as a sentence: given a
//! client, when this many days pass, then this many reminders exist.

use std::ops::Deref;

use rapport_app::account::{ChangeStatus, DeleteAccount, PatchAccount};
use rapport_app::contact::RecordContact;
use rapport_app::{App, Error};
use rapport_domain::account::{Patch, StatusChange};
use rapport_domain::contact::NewContact;
use rapport_domain::event::Kind;
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_jobs::cadence::round;
use rapport_testkit::{Engine, TestApp, TestCompany};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The application, swept when a test asks for it.
pub struct Sweeping {
    test: TestApp,
    pub runtime: Runtime,
}

impl Deref for Sweeping {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.test
    }
}

impl Sweeping {
    pub fn on(engine: Engine) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self { test: TestApp::on(engine), runtime: runtime.expect("a runtime") }
    }

    /// Checks a rule on both engines; the last line a failing test prints names the engine.
    pub fn on_both(rule: impl Fn(&Self)) {
        for engine in Engine::BOTH {
            eprintln!("on {engine}");
            rule(&Self::on(engine));
        }
    }

    /// Sweeps until nothing is left to do now.
    pub fn sweep(&self) {
        self.sweep_by(self.app());
    }

    /// The same, by another node.
    pub fn sweep_by(&self, app: &App) {
        self.runtime.block_on(sweep(app));
    }

    pub fn set_time(&self, text: &str) {
        self.clock().set(Time::parse(text).expect("a time"));
    }

    /// Lets this many days and seconds pass, then sweeps.
    pub fn pass(&self, days: i64, seconds: i64) {
        self.clock().advance_days(days);
        self.clock().advance_seconds(seconds);
        self.sweep();
    }

    pub fn account_in(&self, imported_id: &str, status: Status) -> AccountId {
        account_of(self, imported_id, status)
    }

    pub fn customer(&self, imported_id: &str) -> AccountId {
        self.account_in(imported_id, Status::Customer)
    }

    /// Records a call made this many days ago.
    pub fn call(&self, account: AccountId, days_ago: i64) {
        let at = self.clock().now().plus_days(-days_ago).to_string();
        let body = json!({"kind": "call", "occurred_at": at});
        let contact = NewContact::parse(body.as_object().expect("an object"), self.clock().now());
        let contact = contact.expect("a contact");
        self.write(RecordContact { account, contact }).expect("recorded");
    }

    pub fn patch(&self, id: AccountId, body: Value) {
        let Value::Object(body) = body else { panic!("an object") };
        let (patch, promo_code) = Patch::parse(&body).expect("a patch");
        self.write(PatchAccount { id, patch, promo_code }).expect("patched");
    }

    pub fn move_to(&self, id: AccountId, status: Status) {
        let change = StatusChange { status, note: None };
        assert!(self.write(ChangeStatus { id, change }).expect("changed").moved);
    }

    pub fn delete(&self, id: AccountId) -> Result<(), Error> {
        self.write(DeleteAccount(id)).map(drop)
    }

    /// The `data` of every reminder of this account, oldest first.
    pub fn reminders(&self, account: AccountId) -> Vec<Value> {
        let events = self.events(account).into_iter().filter(|event| event.kind == Kind::ClientContactDue);
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("a payload")["data"].take();
        events.map(|event| read(&event.payload)).collect()
    }

    #[track_caller]
    pub fn expect(&self, account: AccountId, times: usize, when: &str) {
        assert_eq!(self.reminders(account).len(), times, "{when}");
    }

    /// The number of all reminders, counted in the database itself.
    pub fn all_reminders(&self) -> i64 {
        self.number("SELECT count(*) FROM event WHERE kind = 'client.contact_due'")
    }
}

pub fn account_of(company: &TestCompany, imported_id: &str, status: Status) -> AccountId {
    company.upsert(json!({"imported_id": imported_id, "status": status.as_str()})).account.id
}

pub async fn sweep(app: &App) {
    let stop = CancellationToken::new();
    loop {
        let next = round(app, &stop).await.expect("a sweep");
        if next.is_none_or(|next| next > app.now()) {
            return;
        }
    }
}
