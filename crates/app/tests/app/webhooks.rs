//! Webhooks without a sender: the effects of attempts recorded by hand, and what their owners can do.

use rapport_app::Access;
use rapport_app::delivery::{EndDeliveries, RecordAttempt, Recorded};
use rapport_app::erasure::erase_payloads;
use rapport_app::ownership::ClaimManual;
use rapport_app::redeliver::Redeliver;
use rapport_app::vault::Owner;
use rapport_app::webhook::{
    Changes, DeleteWebhook, DisableWebhook, EnableWebhook, PatchWebhook, RotateSecret, TestWebhook,
};
use rapport_domain::delivery::{Attempt, Delivery, Failure, Outcome, Reason, Timings};
use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, DeliveryId, RedeliveryId, WebhookId};
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use rapport_domain::webhook::{Held, MAX_STREAK, Switch, Webhook};
use rapport_store::delivery_list::{Bounds, Listed, scan};
use rapport_testkit::{TestApp, TestCompany, block_on, create_webhook, patch_webhook};
use serde_json::json;

use crate::refusal;

const NODE: i64 = 7;

/// Creates a webhook for all account events.
pub fn webhook(company: &TestCompany) -> WebhookId {
    let body =
        json!({"url": "https://example.com/hook", "events": ["account.created", "account.status_changed"]});
    company.write(create_webhook(company.app(), &body)).expect("a webhook").webhook.id
}

pub fn get(company: &TestCompany, id: WebhookId) -> Webhook {
    company.read(move |snapshot| rapport_store::webhook::get(snapshot, id)).expect("there")
}

/// The delivery list, newest first.
pub fn list(company: &TestCompany, filter: Filter) -> Vec<Listed> {
    company.read(move |snapshot| scan(snapshot, &filter, None, Bounds::page(10_000))).found
}

pub fn ids(company: &TestCompany, state: Shown) -> Vec<DeliveryId> {
    let listed = list(company, Filter { state: Some(state), ..Filter::default() });
    listed.into_iter().map(|listed| listed.delivery.id).collect()
}

fn shown(company: &TestCompany, id: DeliveryId) -> (Shown, Option<String>) {
    let found = company.read(move |snapshot| rapport_store::delivery_list::get(snapshot, id)).expect("there");
    (found.shown.state, found.shown.error)
}

pub fn stored(company: &TestCompany, id: DeliveryId) -> Delivery {
    company.read(move |snapshot| rapport_store::delivery::get(snapshot, id)).expect("there")
}

fn attempt(code: u16, reason: Reason, now: Time) -> Attempt {
    Attempt {
        started_at: now,
        reason,
        outcome: Outcome::Answered { code, retry_after: None },
        error: (code >= 300).then(|| format!("answered {code}")),
        timings: Timings { total: 1_500, ..Timings::default() },
        address: Some("192.0.2.1:443".to_owned()),
        excerpt: b"hello back".to_vec(),
        excerpt_cut: true,
    }
}

/// Records an attempt of a delivery that ended with this code.
pub fn record(
    company: &TestCompany,
    delivery: DeliveryId,
    code: u16,
    manual: Option<RedeliveryId>,
) -> Recorded {
    let webhook = stored(company, delivery).webhook;
    let reason = if manual.is_some() { Reason::Manual } else { Reason::Automatic };
    let attempt = attempt(code, reason, company.app().now());
    let record = RecordAttempt::new(NODE, webhook, delivery, attempt, manual);
    company.write_as(&Access::System(company.id()), record).expect("recorded")
}

/// The waiting manual attempts, as a sender claims them.
pub fn claim_manual(company: &TestCompany, limit: i64) -> Vec<(RedeliveryId, DeliveryId)> {
    let claimed = company.write_as(&Access::System(company.id()), ClaimManual { node: NODE, limit });
    let claimed = claimed.expect("claimed").claimed.into_iter();
    claimed.filter_map(|(found, _)| found.manual.map(|manual| (manual.id, found.delivery))).collect()
}

fn end(company: &TestCompany, webhook: WebhookId, before: Time, error: &'static str) {
    let access = Access::System(company.id());
    while company.write_as(&access, EndDeliveries { webhook, before, error }).expect("ended") {}
}

fn held_count(company: &TestCompany, id: WebhookId) -> i64 {
    company.read(move |snapshot| {
        let state = rapport_store::webhook::state(snapshot, id)?.expect("there");
        rapport_store::delivery::waiting_count(snapshot, id, state.dropped_before, 100)
    })
}

/// Deliveries of three accounts, oldest first, after 20 failures in a row.
fn auto_disabled(app: &TestApp) -> (WebhookId, Vec<DeliveryId>) {
    let id = webhook(app);
    for number in 0..3 {
        app.upsert(json!({"imported_id": format!("crm-{number}")}));
    }
    let mut open = ids(app, Shown::Pending);
    open.reverse();
    assert_eq!(open.len(), 3);
    for failure in 1..=MAX_STREAK {
        let recorded = record(app, open[usize::try_from(failure).unwrap() % 3], 500, None);
        assert_eq!(recorded.disabled, failure == MAX_STREAK, "failure {failure}");
    }
    (id, open)
}

#[test]
fn the_twentieth_failure_in_a_row_disables_and_what_is_open_is_held() {
    TestApp::on_both(|app| {
        let (id, open) = auto_disabled(app);
        let found = get(app, id);
        assert_eq!(found.switch, Switch::AutoDisabled { at: app.clock().now() });
        assert_eq!(found.failure_streak, MAX_STREAK);
        assert_eq!(ids(app, Shown::Held).len(), 3);
        app.upsert(json!({"imported_id": "crm-9"}));
        assert_eq!((ids(app, Shown::Held).len(), held_count(app, id)), (4, 4), "new events are held");
        assert!(ids(app, Shown::Pending).is_empty() && ids(app, Shown::Failed).is_empty());
        let late = record(app, open[0], 200, None);
        assert!(late.disabled, "a late success does not enable it");
        assert_eq!((get(app, id).failure_streak, shown(app, open[0]).0), (0, Shown::Succeeded));
    });
}

#[test]
fn enabling_needs_a_test_that_succeeded_and_sends_what_was_held() {
    TestApp::on_both(|app| {
        let (id, open) = auto_disabled(app);
        let enable = |held| app.write(EnableWebhook { id, held });
        assert_eq!(refusal(enable(Held::Send)), "conflict test_required");

        let test = app.write(TestWebhook(id)).unwrap();
        assert_eq!((test.kind, shown(app, test.id).0), (Kind::WebhookTest, Shown::Pending));
        assert_eq!(ids(app, Shown::Pending), [test.id], "a disabled webhook can be tested");
        let [(manual, delivery)] = claim_manual(app, 10)[..] else { panic!("one attempt waits") };
        assert_eq!(delivery, test.id);
        // A test's first attempt is the test itself, no matter how it reached its sender.
        record_test(app, test.id, manual, 500);
        assert_eq!(shown(app, test.id).0, Shown::Failed, "one attempt");
        assert_eq!(refusal(enable(Held::Send)), "conflict test_required");

        app.clock().advance_seconds(1);
        let test = app.write(TestWebhook(id)).unwrap();
        let manual = claim_manual(app, 10)[0].0;
        record_test(app, test.id, manual, 204);
        app.clock().advance_seconds(1);
        let edit = patch_webhook(app.app(), id, &json!({"url": "https://example.com/new"}));
        app.write(edit).unwrap();
        assert_eq!(refusal(enable(Held::Send)), "conflict test_required", "the test was for another URL");

        app.clock().advance_seconds(1);
        let test = app.write(TestWebhook(id)).unwrap();
        let manual = claim_manual(app, 10)[0].0;
        record_test(app, test.id, manual, 200);
        let before: Vec<i64> = open.iter().map(|id| stored(app, *id).attempts).collect();
        let enabled = enable(Held::Send).unwrap();
        assert_eq!((enabled.switch, enabled.failure_streak), (Switch::Enabled, 0));
        let mut pending = ids(app, Shown::Pending);
        pending.reverse();
        assert_eq!(pending, open);
        let after: Vec<i64> = open.iter().map(|id| stored(app, *id).attempts).collect();
        assert_eq!(after, before, "attempts stay unchanged");
        assert_eq!(app.rows("manual_attempt"), 0);
    });
}

fn record_test(company: &TestCompany, delivery: DeliveryId, manual: RedeliveryId, code: u16) {
    let webhook = stored(company, delivery).webhook;
    let attempt = attempt(code, Reason::Automatic, company.app().now());
    let record = RecordAttempt::new(NODE, webhook, delivery, attempt, Some(manual));
    company.write_as(&Access::System(company.id()), record).expect("recorded");
}

#[test]
fn what_is_dropped_has_failed_at_once_and_is_written_down_in_steps() {
    TestApp::on_both(|app| {
        let id = webhook(app);
        app.write(DisableWebhook(id)).unwrap();
        app.upsert(json!({"imported_id": "crm-1"}));
        app.upsert(json!({"imported_id": "crm-2"}));
        let held = ids(app, Shown::Held);
        assert_eq!((held.len(), held_count(app, id)), (2, 2));
        app.clock().advance_seconds(5);
        let dropped_at = app.clock().now();
        app.write(EnableWebhook { id, held: Held::Drop }).unwrap();
        let dropped = || (Shown::Failed, Some("dropped".to_owned()));
        assert!(held.iter().all(|id| shown(app, *id) == dropped()));
        app.upsert(json!({"imported_id": "crm-3"}));
        assert_eq!((ids(app, Shown::Failed), ids(app, Shown::Pending).len()), (held.clone(), 1));
        end(app, id, dropped_at, "dropped");
        assert!(held.iter().all(|id| shown(app, *id) == dropped() && stored(app, *id).finished_at.is_some()));
        assert_eq!((ids(app, Shown::Failed), ids(app, Shown::Pending).len()), (held, 1));
    });
}

#[test]
fn deleting_a_webhook_ends_its_open_deliveries_and_keeps_their_history() {
    TestApp::on_both(|app| {
        let (id, other) = (webhook(app), webhook(app));
        app.upsert(json!({"imported_id": "crm-1"}));
        app.upsert(json!({"imported_id": "crm-2"}));
        let of = |webhook| Filter { webhook: Some(webhook), ..Filter::default() };
        let own: Vec<DeliveryId> = list(app, of(id)).into_iter().map(|listed| listed.delivery.id).collect();
        record(app, own[0], 200, None);
        app.write(Redeliver(own[1])).unwrap();
        app.write(DeleteWebhook(id)).unwrap();
        assert_eq!(app.rows("manual_attempt"), 0, "nothing more is attempted");
        let gone = || (Shown::Failed, Some("webhook_deleted".to_owned()));
        assert_eq!((shown(app, own[0]).0, shown(app, own[1])), (Shown::Succeeded, gone()));
        assert_eq!(ids(app, Shown::Failed), [own[1]]);
        end(app, id, Time::from_micros(i64::MAX), "webhook_deleted");
        assert_eq!(
            (shown(app, own[1]), stored(app, own[1]).error),
            (gone(), Some("webhook_deleted".to_owned()))
        );
        assert_eq!(list(app, of(id)).len(), 2);
        assert_eq!(refusal(app.write(Redeliver(own[0]))), "conflict webhook_deleted");
        assert_eq!(refusal(app.write(DeleteWebhook(id))), "no such webhook");
        assert_eq!(ids(app, Shown::Pending).len(), list(app, of(other)).len());
    });
}

#[test]
fn redelivery_is_one_attempt_in_any_state() {
    TestApp::on_both(|app| {
        let id = webhook(app);
        app.upsert(json!({"imported_id": "crm-1"}));
        let [delivery] = ids(app, Shown::Pending)[..] else { panic!("one") };
        for (code, state) in [(404, Shown::Failed), (200, Shown::Succeeded), (500, Shown::Succeeded)] {
            app.write(Redeliver(delivery)).unwrap();
            let [(manual, same)] = claim_manual(app, 10)[..] else { panic!("one attempt waits") };
            assert_eq!(same, delivery);
            if state == Shown::Failed {
                record(app, delivery, code, None);
                app.write(DisableWebhook(id)).unwrap();
            }
            record(app, delivery, code, Some(manual));
            assert_eq!(shown(app, delivery).0, state, "{code}");
        }
        let attempts = app.read(move |snapshot| rapport_store::delivery::attempts(snapshot, delivery));
        let made: Vec<(i64, bool, Option<i64>)> =
            attempts.iter().map(|kept| (kept.number, kept.manual, kept.response_code)).collect();
        let expected =
            [(1, false, Some(404)), (2, true, Some(404)), (3, true, Some(200)), (4, true, Some(500))];
        assert_eq!(made, expected);
        assert_eq!(stored(app, delivery).response_code, Some(200), "a later failure doesn't hide a success");
    });
}

#[test]
fn erasure_takes_payloads_and_answers_and_leaves_the_rest() {
    TestApp::on_both(|app| {
        webhook(app);
        let erased = app.upsert(json!({"imported_id": "crm-1", "name": "Erased"})).account.id;
        let kept = app.upsert(json!({"imported_id": "crm-2", "name": "Kept"})).account.id;
        app.upsert(json!({"imported_id": "crm-1", "status": "lost"}));
        let of = |account| Filter { account: Some(account), ..Filter::default() };
        let [open, done] =
            list(app, of(erased)).into_iter().map(|listed| listed.delivery.id).collect::<Vec<_>>()[..]
        else {
            panic!("two deliveries")
        };
        record(app, done, 200, None);
        let erase = |account| block_on(erase_payloads(app.app(), app.token(), account));
        assert_eq!(erase(erased).unwrap().payloads, 2);
        assert_eq!(erase(erased).unwrap().payloads, 0, "once");
        assert!(app.events(erased).iter().all(|event| event.payload.is_empty()));
        assert!(app.events(kept).iter().all(|event| event.payload.contains("Kept")));
        assert_eq!(shown(app, open), (Shown::Failed, Some("payload_erased".to_owned())));
        assert_eq!(shown(app, done), (Shown::Succeeded, None));
        let attempts = app.read(move |snapshot| rapport_store::delivery::attempts(snapshot, done));
        assert_eq!((attempts[0].excerpt.as_ref(), attempts[0].response_code), (None, Some(200)));
        for delivery in [open, done] {
            assert_eq!(refusal(app.write(Redeliver(delivery))), "conflict payload_erased");
        }
        assert_eq!(list(app, of(kept))[0].shown.state, Shown::Pending);
        let nobody = AccountId::from_bytes([9; 16]);
        assert_eq!(refusal(erase(nobody)), "no such account");
        app.write(rapport_app::account::DeleteAccount(kept)).unwrap();
        assert_eq!(erase(kept).unwrap().payloads, 1, "a deleted account's payloads can still be erased");
    });
}

#[test]
fn erasure_goes_through_many_events_in_steps() {
    TestApp::on_both(|app| {
        let account = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        for number in 0..130 {
            let kind = if number % 2 == 0 { "churned" } else { "trial_started" };
            app.ingest(json!([{"imported_id": "crm-1", "kind": kind}]));
        }
        assert_eq!(app.events(account).len(), 131);
        assert_eq!(block_on(erase_payloads(app.app(), app.token(), account)).unwrap().payloads, 131);
        assert!(app.events(account).iter().all(|event| event.payload.is_empty()));
    });
}

#[test]
fn a_rotated_secret_is_the_only_one() {
    TestApp::on_both(|app| {
        let body = json!({"url": "https://example.com/hook", "events": ["account.created"]});
        let made = app.write(create_webhook(app.app(), &body)).unwrap();
        let (company, id) = (app.id(), made.webhook.id);
        let opened = || {
            let read =
                app.app().read_across(move |across| rapport_store::webhook::targets(across, company, &[id]));
            let target = block_on(read).unwrap().pop().unwrap();
            app.app().services().vault().open(Owner::Webhook(id), &target.sealed_secret).unwrap()
        };
        assert_eq!(opened(), made.secret);
        let rotated = app.write(RotateSecret(id)).unwrap();
        assert_ne!(rotated.secret, made.secret);
        assert_eq!(opened(), rotated.secret);
        assert!(rotated.secret.starts_with("whs_") && !rotated.shown.contains(&rotated.secret));
    });
}

#[test]
fn webhooks_and_deliveries_of_another_company_are_not_found() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let id = webhook(&globex);
        let account = globex.upsert(json!({"imported_id": "crm-1"})).account.id;
        let [delivery] = ids(&globex, Shown::Pending)[..] else { panic!("one") };
        let before = (get(&globex, id), stored(&globex, delivery));
        let edit = PatchWebhook { id, changes: Changes::default() };
        assert_eq!(refusal(app.write(edit)), "no such webhook");
        assert_eq!(refusal(app.write(DisableWebhook(id))), "no such webhook");
        assert_eq!(refusal(app.write(EnableWebhook { id, held: Held::Drop })), "no such webhook");
        assert_eq!(refusal(app.write(RotateSecret(id))), "no such webhook");
        assert_eq!(refusal(app.write(TestWebhook(id))), "no such webhook");
        assert_eq!(refusal(app.write(DeleteWebhook(id))), "no such webhook");
        assert_eq!(refusal(app.write(Redeliver(delivery))), "no such delivery");
        let erased = block_on(erase_payloads(app.app(), app.token(), account));
        assert_eq!(refusal(erased), "no such account");
        assert!(list(app, Filter::default()).is_empty());
        assert!(list(app, Filter { webhook: Some(id), ..Filter::default() }).is_empty());
        app.upsert(json!({"imported_id": "crm-1"}));
        assert_eq!(list(&globex, Filter::default()).len(), 1, "events go to their own company's webhooks");
        assert_eq!((get(&globex, id), stored(&globex, delivery)), before);
    });
}

#[test]
fn members_do_not_manage_webhooks() {
    TestApp::on_both(|app| {
        let id = webhook(app);
        let account = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        let delivery = ids(app, Shown::Pending)[0];
        let member = app.token_of(Role::Member);
        let forbidden = "forbidden role_required";
        assert_eq!(refusal(app.write_as(&member, DeleteWebhook(id))), forbidden);
        assert_eq!(refusal(app.write_as(&member, TestWebhook(id))), forbidden);
        assert_eq!(refusal(app.write_as(&member, RotateSecret(id))), forbidden);
        assert_eq!(refusal(app.write_as(&member, Redeliver(delivery))), forbidden);
        assert_eq!(refusal(block_on(erase_payloads(app.app(), &member, account))), forbidden);
        assert_eq!(refusal(app.write_as(app.token(), ClaimManual { node: 1, limit: 1 })), "unauthenticated");
    });
}

#[test]
fn a_fault_of_ours_leaves_a_manual_attempt_to_be_made() {
    TestApp::on_both(|app| {
        webhook(app);
        app.upsert(json!({"imported_id": "crm-1"}));
        let delivery = ids(app, Shown::Pending)[0];
        app.write(Redeliver(delivery)).unwrap();
        let [(manual, _)] = claim_manual(app, 10)[..] else { panic!("one attempt was requested") };
        let own = Attempt {
            outcome: Outcome::Failed(Failure::Own),
            ..attempt(500, Reason::Manual, app.app().now())
        };
        let webhook = stored(app, delivery).webhook;
        let unmade = RecordAttempt::new(NODE, webhook, delivery, own, Some(manual));
        app.write_as(&Access::System(app.id()), unmade).unwrap();
        assert_eq!(stored(app, delivery).attempts, 0, "it isn't counted");
        assert_eq!(claim_manual(app, 10), [(manual, delivery)], "and waits for its next chance");
        record(app, delivery, 200, Some(manual));
        assert_eq!(claim_manual(app, 10), [], "made once, it is done");
    });
}
