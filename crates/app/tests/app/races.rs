//! Races between two transactions on PostgreSQL, made deterministic: another connection holds a row until the
//! use case is seen to wait for it. SQLite has one writer and no such races.

use std::thread;
use std::time::{Duration, Instant};

use rapport_app::Viewer;
use rapport_app::account::PatchAccount;
use rapport_app::channel::RenameChannel;
use rapport_app::precondition::{Checked, IfCurrent, Subject};
use rapport_app::settings::PatchSettings;
use rapport_app::submission::Outcome;
use rapport_domain::account::Patch;
use rapport_domain::pipeline::Status;
use rapport_store::Snapshot;
use rapport_testkit::{Engine, TestApp};
use serde_json::json;

use crate::refusal;
use crate::repeats::{bytes_literal, claim, creating};

const LIMIT: Duration = Duration::from_mins(1);

/// Runs `sql` in a transaction that stays open until `work` waits for it, then commits.
fn while_open<T: Send>(app: &TestApp, sql: &str, work: impl FnOnce() -> T + Send) -> T {
    let mut holder = app.postgres();
    let mut watcher = app.postgres();
    holder.batch_execute(&format!("BEGIN; {sql}")).expect("holding a row");
    thread::scope(|scope| {
        let working = scope.spawn(work);
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock'";
        let deadline = Instant::now() + LIMIT;
        while watcher.query_one(waiting, &[]).expect("asking who waits").get::<_, i64>(0) == 0 {
            assert!(!working.is_finished(), "it didn't wait for the locked row");
            assert!(Instant::now() < deadline, "nothing waits after {LIMIT:?}");
            thread::yield_now();
        }
        holder.batch_execute("COMMIT").expect("releasing the row");
        working.join().expect("the work ends")
    })
}

fn on_postgres() -> TestApp {
    TestApp::on(Engine::Postgres)
}

#[test]
fn a_channel_given_while_an_upsert_waits_is_not_lost() {
    let app = on_postgres();
    let channel = app.channel("Fair", &["FAIR"]);
    app.upsert(json!({"imported_id": "crm-1"}));
    let attribute =
        "UPDATE account SET channel = (SELECT id FROM channel), promo_code = 'FAIR', acquired_at = 5";
    while_open(&app, attribute, || app.upsert(json!({"imported_id": "crm-1", "custom_fields": {"a": 1}})));
    let account = app.account("crm-1");
    assert_eq!(account.channel.map(|channel| channel.id), Some(channel.id));
    assert_eq!(account.custom_fields.as_json(), r#"{"a":1}"#);
}

#[test]
fn a_channel_changed_while_activity_waits_is_not_lost() {
    let app = on_postgres();
    app.channel("Fair", &["FAIR"]);
    let other = app.channel("Other", &["OTHER"]);
    app.upsert(json!({"imported_id": "crm-1", "promo_code": "FAIR"}));
    let change =
        "UPDATE account SET channel = (SELECT id FROM channel WHERE name = 'Other'), promo_code = 'OTHER'";
    while_open(&app, change, || app.ingest(json!([{"imported_id": "crm-1", "kind": "churned"}])));
    let account = app.account("crm-1");
    assert_eq!(account.channel.map(|channel| channel.id), Some(other.id));
    assert_eq!(account.status, Status::Lost);
}

#[test]
fn an_account_created_elsewhere_while_an_upsert_waits_is_patched() {
    let app = on_postgres();
    app.upsert(json!({"imported_id": "crm-1", "name": "First"}));
    let create = "INSERT INTO account SELECT company, '\\x01010101010101010101010101010101', 'crm-2', name, \
                  name_folded, status, custom_fields, value_amount, value_currency, channel, promo_code, acquired_at, \
                  last_contact_at, cadence_days, snoozed_until, tracked_since, campaign_hold, created_at, updated_at \
                  FROM account";
    let reply = while_open(&app, create, || app.upsert(json!({"imported_id": "crm-2", "name": "Second"})));
    assert_eq!((reply.created, reply.ignored), (false, vec!["name"]));
    assert_eq!((app.rows("account"), app.account("crm-2").name.as_str()), (2, "First"));
}

#[test]
fn an_imported_id_taken_while_an_edit_waits_is_a_conflict() {
    let app = on_postgres();
    let id = app.upsert(json!({"imported_id": "crm-1"})).account.id;
    app.upsert(json!({"imported_id": "crm-2"}));
    let take = "UPDATE account SET imported_id = 'crm-3' WHERE imported_id = 'crm-2'";
    let edit = || {
        let (patch, promo_code) = Patch::parse(json!({"imported_id": "crm-3"}).as_object().unwrap()).unwrap();
        app.write(PatchAccount { id, patch, promo_code })
    };
    assert_eq!(refusal(while_open(&app, take, edit)), "conflict imported_id_taken");
    assert_eq!(app.account("crm-1").id, id);
}

#[test]
fn a_channel_name_taken_while_a_rename_waits_is_a_conflict() {
    let app = on_postgres();
    let one = app.channel("One", &[]);
    app.channel("Two", &[]);
    let take = "UPDATE channel SET name = 'Three', name_folded = 'three' WHERE name = 'Two'";
    let rename = || app.write(RenameChannel { id: one.id, name: "Three".to_owned() });
    assert_eq!(refusal(while_open(&app, take, rename)), "conflict name_taken");
}

#[test]
fn a_key_used_on_another_node_while_a_request_acts_repeats_its_response() {
    let app = on_postgres();
    let claim = claim("a", "Nordlys");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let [id, request] = [&claim.id.as_bytes()[..], claim.request.as_bytes()]
        .map(|bytes| bytes_literal(app.database(), &hex(bytes)));
    let (company, now) = (app.id().0, app.clock().now().as_micros());
    let keep = format!(
        "INSERT INTO kept_response (company, id, request, status, body, at) \
         VALUES ({company}, {id}, {request}, 201, 'the first', {now})"
    );
    let outcome = while_open(&app, &keep, || app.write(creating(claim, "Nordlys", 0)).unwrap());
    assert_eq!(outcome, Outcome::Repeated { status: 201, body: Some("the first".to_owned()) });
    assert_eq!(app.rows("account"), 0, "what the second request did is undone");
}

#[test]
fn settings_changed_while_a_conditional_change_waits_make_it_stale() {
    let app = on_postgres();
    let rename = |cadence_days: i64| {
        let body = json!({ "cadence_days": cadence_days });
        // Current as long as the name is the one that the caller knows.
        let find_stale = Box::new(|_: &mut Snapshot, viewer: &Viewer| {
            let name = viewer.caller.company.name.clone();
            Ok(Some(name).filter(|name| name == "Changed"))
        });
        let command = PatchSettings(body.as_object().unwrap().clone());
        IfCurrent { subject: Subject::Company, command, find_stale }
    };
    assert!(matches!(app.write(rename(7)), Ok(Checked::Done(_))));
    let change = "UPDATE company SET name = 'Changed'";
    let outcome = while_open(&app, change, || app.write(rename(8)));
    assert!(matches!(outcome, Ok(Checked::Stale(name)) if name == "Changed"));
    assert_eq!(app.number("SELECT cadence_days FROM company"), 7);
}
