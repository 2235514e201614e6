//! What a webhook is sent: its filter, the events it has to ask for, and its own headers.

use rapport_app::account::{ChangeStatus, DeleteAccount, PatchAccount};
use rapport_app::contact::RecordContact;
use rapport_app::conversation::StartWithMessage;
use rapport_app::read::webhook::{Choice, preview};
use rapport_app::vault::Owner;
use rapport_app::webhook::{DeleteWebhook, DisableWebhook, TestWebhook};
use rapport_domain::account::{Patch, StatusChange};
use rapport_domain::contact::NewContact;
use rapport_domain::conversation::{Log, Start};
use rapport_domain::delivery_list::Filter;
use rapport_domain::event::Kind;
use rapport_domain::event_filter::{EventFilter, Judgement, Mismatch};
use rapport_domain::id::{AccountId, WebhookId};
use rapport_domain::opt_in::OptIn;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::webhook::{STANDARD, Selection};
use rapport_store::{webhook, webhook_choice};
use rapport_testkit::{TestApp, TestCompany, block_on, create_webhook, patch_webhook};
use serde_json::{Value, json};

use crate::imports::{imported, undone};
use crate::webhooks::list;
use crate::{kinds, payloads, refusal};

const ALL: [&str; 4] = ["account.created", "account.status_changed", "message.inbound", "client.contact_due"];

fn create(company: &TestCompany, events: &[&str], more: Value) -> WebhookId {
    let mut body = json!({ "url": "https://example.com/hook", "events": events });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    company.write(create_webhook(company.app(), &body)).expect("a webhook").webhook.id
}

fn try_edit(company: &TestCompany, id: WebhookId, body: Value) -> Result<(), rapport_app::Error> {
    company.write(patch_webhook(company.app(), id, &body)).map(drop)
}

fn edit(company: &TestCompany, id: WebhookId, body: Value) {
    try_edit(company, id, body).expect("edited");
}

/// The kinds of a webhook's deliveries, oldest first.
fn delivered(company: &TestCompany, id: WebhookId) -> Vec<Kind> {
    let listed = list(company, Filter { webhook: Some(id), ..Filter::default() });
    listed.into_iter().rev().map(|listed| listed.delivery.kind).collect()
}

fn patch_account(company: &TestCompany, id: AccountId, body: Value) {
    let (patch, promo_code) = Patch::parse(body.as_object().unwrap()).expect("an edit");
    company.write(PatchAccount { id, patch, promo_code }).expect("edited");
}

fn choice(company: &TestCompany, id: WebhookId) -> Choice {
    company.read(move |snapshot| webhook_choice::get(snapshot, id))
}

fn opt_in(company: &TestCompany) -> OptIn {
    company.read(rapport_store::company::get).expect("a company").opt_in
}

#[test]
fn a_filter_decides_in_the_transaction_of_the_event() {
    TestApp::on_both(|app| {
        let fair = app.channel("Fair", &["FAIR"]);
        let everything = create(app, &ALL, json!({}));
        let won = create(app, &ALL, json!({"filters": {"from": "in_trial", "to": "customer"}}));
        let lost = create(app, &ALL, json!({"filters": {"to": ["lost"]}}));
        let of_fair = create(app, &ALL, json!({"filters": {"channel": fair.id.to_string()}}));
        let pro = create(
            app,
            &ALL,
            json!({"filters": {"fields": {"plan": ["pro", "max"], "seats": {"exists": true}}}}),
        );
        app.upsert(json!({"imported_id": "1", "promo_code": "fair"}));
        app.upsert(
            json!({"imported_id": "2", "custom_fields": {"plan": "Pro", "seats": 3}, "status": "lost"}),
        );
        app.upsert(json!({"imported_id": "1", "status": "in_trial"}));
        app.upsert(json!({"imported_id": "1", "status": "customer"}));
        app.upsert(json!({"imported_id": "2", "status": "customer", "custom_fields": {"plan": "basic"}}));
        let (created, moved) = (Kind::AccountCreated, Kind::AccountStatusChanged);
        assert_eq!(delivered(app, everything), [created, created, moved, moved, moved]);
        assert_eq!(delivered(app, won), [moved], "only from In trial to Customer");
        assert_eq!(delivered(app, lost), [created], "a new account is in its stage");
        assert_eq!(delivered(app, of_fair), [created, moved, moved]);
        assert_eq!(delivered(app, pro), [created], "the fields as they are after the change");

        // The filter at the moment of the event decides.
        edit(app, won, json!({"filters": {}}));
        app.upsert(json!({"imported_id": "3"}));
        assert_eq!(delivered(app, won), [moved, created]);
        app.write(TestWebhook(lost)).expect("a test");
        assert_eq!(
            delivered(app, lost),
            [created, Kind::WebhookTest],
            "a test goes out whatever the filter says"
        );
    });
}

#[test]
fn a_filter_applies_to_a_disabled_webhook_and_to_very_many_of_them() {
    TestApp::on_both(|app| {
        let disabled = create(app, &["account.created"], json!({"filters": {"to": "lost"}}));
        app.write(DisableWebhook(disabled)).expect("disabled");
        let many: Vec<WebhookId> = (0..rapport_app::fan_out::AT_ONCE + 8)
            .map(|number| {
                let to = if number % 2 == 0 { "lost" } else { "customer" };
                create(app, &["account.created"], json!({"filters": {"to": to}}))
            })
            .collect();
        app.upsert(json!({"imported_id": "1"}));
        assert_eq!((app.rows("delivery"), app.rows("fan_out")), (0, 0), "nobody wants a prospect");
        app.upsert(json!({"imported_id": "2", "status": "lost"}));
        let wanting = i64::try_from(many.len() / 2 + 1).unwrap();
        assert_eq!(
            (app.rows("delivery"), app.rows("fan_out")),
            (wanting, 0),
            "so few fit in the transaction"
        );
        assert_eq!(delivered(app, disabled), [Kind::AccountCreated], "held");
        assert_eq!(delivered(app, many[1]), []);
    });
}

#[test]
fn a_preview_says_which_of_the_latest_events_would_be_sent_and_why_not() {
    TestApp::on_both(|app| {
        let id = create(app, &["account.created"], json!({}));
        app.upsert(json!({"imported_id": "1", "custom_fields": {"plan": "pro"}}));
        app.upsert(json!({"imported_id": "1", "status": "in_trial"}));
        app.upsert(json!({"imported_id": "2", "status": "lost"}));
        app.write(TestWebhook(id)).expect("a test");
        let judge = |kinds: &[&str], filters: Value| {
            let selection = Selection::from_json(&json!(kinds)).unwrap();
            let filter = EventFilter::parse(filters.as_object().unwrap(), "").unwrap();
            let found = app.read(move |snapshot| preview(snapshot, &selection, &filter));
            found.into_iter().map(|line| line.judgement).collect::<Vec<_>>()
        };
        let filtered = Judgement::Filtered;
        let (created, both) = (["account.created"], ["account.created", "account.status_changed"]);
        assert_eq!(
            judge(&created, json!({})),
            [Judgement::Sent, Judgement::NotSelected, Judgement::Sent],
            "newest first, without tests"
        );
        let expected = [
            filtered(Mismatch::NotAMove),
            filtered(Mismatch::From(Status::Prospect)),
            filtered(Mismatch::NotAMove),
        ];
        assert_eq!(judge(&both, json!({"from": "lost"})), expected);
        let expected = [filtered(Mismatch::Field("plan".to_owned())), Judgement::Sent, Judgement::Sent];
        assert_eq!(judge(&both, json!({"fields": {"plan": "PRO"}})), expected);
        assert_eq!(app.rows("delivery"), 3, "a preview sends nothing");
    });
}

#[test]
fn nobody_hears_of_an_update_unless_a_webhook_asks() {
    TestApp::on_both(|app| {
        create(app, &ALL, json!({}));
        let account = app.upsert(json!({"imported_id": "1"})).account.id;
        let update = |plan: &str| app.upsert(json!({"imported_id": "1", "custom_fields": {"plan": plan}}));
        update("a");
        assert_eq!(
            kinds(app, account),
            [Kind::AccountCreated],
            "all events are those that nobody has to ask for"
        );
        assert_eq!(opt_in(app), OptIn::default());

        let asking = create(app, &["account.updated"], json!({}));
        update("b");
        assert_eq!(kinds(app, account), [Kind::AccountCreated, Kind::AccountUpdated]);
        assert_eq!(delivered(app, asking), [Kind::AccountUpdated]);
        app.write(DisableWebhook(asking)).expect("disabled");
        update("c");
        assert_eq!(kinds(app, account).len(), 3, "a disabled webhook's events are held");

        edit(app, asking, json!({"events": ["account.created"]}));
        update("d");
        assert_eq!((kinds(app, account).len(), opt_in(app)), (3, OptIn::default()));
        edit(app, asking, json!({"events": ["account.updated", "contact.logged"]}));
        let other = create(app, &["contact.logged"], json!({}));
        app.write(DeleteWebhook(asking)).expect("deleted");
        update("e");
        assert_eq!(kinds(app, account).len(), 3, "a deleted webhook asks for nothing");
        assert!(opt_in(app).includes(Kind::ContactLogged) && !opt_in(app).includes(Kind::AccountUpdated));
        app.write(DeleteWebhook(other)).expect("deleted");
        assert_eq!(opt_in(app), OptIn::default());
        let neighbour = app.company("globex");
        create(&neighbour, &["account.updated"], json!({}));
        assert_eq!(opt_in(app), OptIn::default(), "each company for itself");
    });
}

#[test]
fn an_update_has_the_old_and_the_new_values_whoever_made_it() {
    TestApp::on_both(|app| {
        create(app, &["account.updated", "account.status_changed"], json!({}));
        let account = app.upsert(json!({"imported_id": "1", "custom_fields": {"a": 1, "b": 2}})).account.id;
        let last = || payloads(app, account).pop().expect("a payload");
        let count = || kinds(app, account).len();

        app.upsert(json!({"imported_id": "1", "custom_fields": {"a": 5, "b": null}, "captured_value": "10"}));
        let update = last();
        assert_eq!(update["changes"]["custom_fields"], json!({"old": {"a": 1, "b": 2}, "new": {"a": 5}}));
        assert_eq!(update["changes"]["captured_value"], json!({"old": null, "new": "10.00"}));
        assert_eq!(
            (&update["source"], &update["account"]["captured_value"]),
            (&json!("upsert"), &json!("10.00"))
        );

        let before = count();
        app.upsert(
            json!({"imported_id": "1", "custom_fields": {"a": 5}, "captured_value": "10", "name": "New"}),
        );
        assert_eq!(count(), before, "nothing changed");
        let change = StatusChange { status: Status::InTrial, note: None };
        app.write(ChangeStatus { id: account, change }).expect("moved");
        assert_eq!(kinds(app, account)[before..], [Kind::AccountStatusChanged], "a move is reported once");

        let before = count();
        app.upsert(json!({"imported_id": "1", "status": "contacted", "custom_fields": {"a": 6}}));
        assert_eq!(kinds(app, account)[before..], [Kind::AccountStatusChanged, Kind::AccountUpdated]);
        assert_eq!(last()["changes"], json!({"custom_fields": {"old": {"a": 5}, "new": {"a": 6}}}));

        patch_account(app, account, json!({"name": "Nordlys", "snoozed_until": "2030-01-01"}));
        let update = last();
        assert_eq!(update["changes"]["name"], json!({"old": "1", "new": "Nordlys"}));
        assert_eq!(update["changes"]["snoozed_until"], json!({"old": null, "new": "2030-01-01"}));
        assert_eq!(update["source"], json!("operator"));

        let became =
            json!({"imported_id": "1", "kind": "became_customer", "metadata": {"captured_value": "20"}});
        app.ingest(json!([became]));
        assert_eq!(last()["changes"], json!({"captured_value": {"old": "10.00", "new": "20.00"}}));
        assert_eq!(last()["source"], json!("automation"));
        let before = count();
        app.ingest(json!([{"imported_id": "1", "kind": "app_opened"}]));
        assert_eq!(count(), before, "activity isn't an update");
    });
}

#[test]
fn an_import_and_its_undo_report_updates_and_deletions() {
    TestApp::on_both(|app| {
        create(app, &["account.updated", "account.deleted"], json!({}));
        let known = app.upsert(json!({"imported_id": "1"})).account.id;
        let file = "id,name,plan\n1,First,a\n1,Second,a\n2,New,b\n";
        let import = imported(app, file, json!({}));
        let new = app.account("2").id;
        let names =
            |data: &Value| (data["changes"]["name"]["old"].clone(), data["changes"]["name"]["new"].clone());
        let updates: Vec<_> = payloads(app, known).iter().skip(1).map(names).collect();
        assert_eq!(
            updates,
            [(json!("1"), json!("First")), (json!("First"), json!("Second"))],
            "one for each row"
        );
        assert_eq!(kinds(app, new), [Kind::AccountCreated]);

        undone(app, import.id);
        let undo = payloads(app, known).pop().expect("a payload");
        assert_eq!(names(&undo), (json!("Second"), json!("1")));
        assert_eq!(undo["changes"]["custom_fields"], json!({"old": {"plan": "a"}, "new": {}}));
        assert_eq!(kinds(app, new), [Kind::AccountCreated, Kind::AccountDeleted]);
        assert_eq!(payloads(app, new)[1]["source"], json!(Source::Import.as_str()));
    });
}

#[test]
fn a_deletion_and_contact_are_told_to_those_who_ask() {
    TestApp::on_both(|app| {
        let asking = create(app, &["account.deleted", "contact.logged"], json!({}));
        let account = app.upsert(json!({"imported_id": "1", "name": "Nordlys"})).account.id;
        let contact = json!({"kind": "call", "note": "Rang twice"});
        let contact = NewContact::parse(contact.as_object().unwrap(), app.clock().now()).unwrap();
        app.write(RecordContact { account, contact }).expect("recorded");
        let told = payloads(app, account).pop().expect("a payload");
        assert_eq!(
            (&told["contact"]["kind"], &told["contact"]["note"]),
            (&json!("call"), &json!("Rang twice"))
        );
        assert_eq!(told["account"]["last_contact_at"], json!(app.clock().now().to_string()));
        assert_eq!((&told["conversation"], &told["message"]), (&Value::Null, &Value::Null));

        let say = |direction: &str, body: &str| {
            let start = Start::parse(json!({"subject": "Offer"}).as_object().unwrap()).unwrap();
            let log = json!({"direction": direction, "body": body});
            let log = Log::parse(log.as_object().unwrap(), app.clock().now()).unwrap();
            app.write(StartWithMessage { account, request: start, log }).expect("logged");
        };
        say("outbound", "Hello");
        let told = payloads(app, account).pop().expect("a payload");
        assert_eq!((&told["contact"], &told["message"]["body"]), (&Value::Null, &json!("Hello")));
        assert_eq!(told["conversation"]["subject"], json!("Offer"));
        say("inbound", "Hi");
        let logged = [Kind::AccountCreated, Kind::ContactLogged, Kind::ContactLogged, Kind::MessageInbound];
        assert_eq!(kinds(app, account), logged, "an inbound message isn't contact");

        app.write(DeleteAccount(account)).expect("deleted");
        let told = payloads(app, account).pop().expect("a payload");
        assert_eq!((&told["account"]["name"], &told["source"]), (&json!("Nordlys"), &json!("operator")));
        assert_eq!(delivered(app, asking), [Kind::ContactLogged, Kind::ContactLogged, Kind::AccountDeleted]);
    });
}

#[test]
fn two_webhooks_that_ask_at_once_are_both_heard() {
    TestApp::on_both(|app| {
        let asks = ["account.updated", "contact.logged", "account.deleted"];
        std::thread::scope(|scope| {
            for kind in asks {
                scope.spawn(move || create(app, &[kind], json!({})));
            }
        });
        assert!(Kind::OPT_IN.into_iter().all(|kind| opt_in(app).includes(kind)), "{:?}", opt_in(app));
    });
}

#[test]
fn all_events_stay_the_five_of_the_contract() {
    assert_eq!(STANDARD.map(Kind::as_str), ALL);
    assert!(Kind::OPT_IN.into_iter().all(|kind| !STANDARD.contains(&kind)));
}

#[test]
fn a_secret_header_is_encrypted_and_keeps_its_value_for_its_host_only() {
    TestApp::on_both(|app| {
        let given = json!([
            {"name": "Authorization", "value": "Bearer hush"}, {"name": "X-Env", "value": "prod", "secret": false},
        ]);
        let id = create(app, &["account.created"], json!({ "headers": given }));
        let shown = |id| {
            let headers = choice(app, id).headers.into_iter();
            headers.map(|header| (header.name, header.value)).collect::<Vec<_>>()
        };
        let own = |text: &str| text.to_owned();
        assert_eq!(shown(id), [(own("Authorization"), None), (own("X-Env"), Some(own("prod")))]);
        let secrets = || {
            let sealed = app.read(move |snapshot| webhook_choice::sealed_headers(snapshot, id));
            let sealed = sealed.expect("sealed");
            assert!(!sealed.windows(4).any(|part| part == b"hush"), "it is encrypted");
            app.app().services().vault().open(Owner::WebhookHeaders(id), &sealed).expect("opened")
        };
        assert_eq!(secrets(), r#"{"authorization":"Bearer hush"}"#);
        edit(app, id, json!({"headers": [{"name": "authorization"}]}));
        assert_eq!((shown(id).len(), secrets().as_str()), (1, r#"{"authorization":"Bearer hush"}"#));
        assert_eq!(
            refusal(try_edit(app, id, json!({"headers": [{"name": "X-Other"}]}))),
            "invalid /headers/0/value required"
        );

        // The same host may have another path, but another host gets no secret that wasn't entered for it.
        edit(app, id, json!({"url": "https://example.com/other"}));
        let elsewhere = "https://example.org/";
        assert_eq!(refusal(try_edit(app, id, json!({ "url": elsewhere }))), "invalid /headers required");
        let kept = json!({"url": elsewhere, "headers": [{"name": "Authorization"}]});
        assert_eq!(refusal(try_edit(app, id, kept)), "invalid /headers/0/value required");
        let found = app.read(move |snapshot| webhook::get(snapshot, id)).expect("there");
        assert_eq!(found.url, "https://example.com/other", "a refused edit changes nothing");
        let again = json!({"url": elsewhere, "headers": [{"name": "Authorization", "value": "Bearer new"}]});
        edit(app, id, again);
        assert_eq!(secrets(), r#"{"authorization":"Bearer new"}"#);

        let company = app.id();
        app.write(DeleteWebhook(id)).expect("deleted");
        let read = app.app().read_across(move |across| webhook::targets(across, company, &[id]));
        let target = block_on(read).expect("read").remove(0);
        assert_eq!((target.headers.as_str(), target.sealed_headers), ("", None), "nothing keeps them");
    });
}
