//! The audit log, as a table: every change to settings, keys, members, invitations, webhooks, channels and views is
//! recorded with the change, the actor and the address, and without secrets. So are deletions, exports and bulk moves by
//! anyone, changes to accounts by people, failed logins and refusals.

use rapport_app::account::{ChangeStatus, CreateAccount, DeleteAccount, PatchAccount};
use rapport_app::account_address::{AddAddress, RemoveAddress};
use rapport_app::bulk::ChangeAccounts;
use rapport_app::channel::{AddCode, ArchiveCode, CreateChannel, DeleteChannel, DeleteCode, RenameChannel};
use rapport_app::credential::{CreateToken, Key, RevokeToken, RotateKey};
use rapport_app::erasure::erase_payloads;
use rapport_app::exchange_rate::{AddRate, ChangeRate, DeleteRate};
use rapport_app::export::{Exported, RecordExport};
use rapport_app::failed_login;
use rapport_app::invitation::{Invite, Offer, ResendInvitation, RevokeInvitation};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::password_reset::{OpenReset, SendReset};
use rapport_app::refusal::{self, Refused};
use rapport_app::saved_view::{DeleteView, RenameView, SaveView};
use rapport_app::settings::PatchSettings;
use rapport_app::webhook::{DeleteWebhook, DisableWebhook, EnableWebhook, RotateSecret, TestWebhook};
use rapport_app::{Access, Command, Error, Origin};
use rapport_domain::account::{Create, Patch, StatusChange};
use rapport_domain::audit::Filter;
use rapport_domain::bulk::BulkChange;
use rapport_domain::channel::PromoCode;
use rapport_domain::credential::TokenRequest;
use rapport_domain::device::Device;
use rapport_domain::exchange_rate::{NewRate, RatePatch};
use rapport_domain::history::Actor;
use rapport_domain::id::AccountId;
use rapport_domain::invitation::Acceptance;
use rapport_domain::member::{Email, Role};
use rapport_domain::pipeline::Status;
use rapport_domain::request_id::RequestId;
use rapport_domain::saved_view::Save;
use rapport_domain::webhook::Held;
use rapport_store::audit::AuditEntry;
use rapport_testkit::{TestApp, TestCompany, block_on, create_webhook, patch_webhook, raw};
use serde_json::{Value, json};

use crate::logged_in;

const FROM: &str = "192.0.2.7";
const REQUEST: &str = "abc-1";

/// Runs commands as if they came over the network, and remembers every secret that was shown.
struct Managing<'a> {
    app: &'a TestApp,
    secrets: Vec<String>,
}

impl Managing<'_> {
    fn run<C: Command>(&self, command: C) -> C::Reply {
        self.try_run(self.app.token(), command).unwrap_or_else(|error| panic!("refused: {error:?}"))
    }

    fn try_run<C: Command>(&self, access: &Access, command: C) -> Result<C::Reply, Error> {
        block_on(self.app.app().write_from(access, Some(origin()), command))
    }

    fn log(&self) -> Vec<AuditEntry> {
        let page =
            self.app.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1000));
        page.items.into_iter().rev().collect()
    }

    /// The entries logged since there were `known` of them, as action and detail.
    fn since(&self, known: usize) -> Vec<(String, Value)> {
        let entry = |entry: &AuditEntry| (entry.action.clone(), serde_json::from_str(&entry.detail).unwrap());
        self.log()[known..].iter().map(entry).collect()
    }
}

fn origin() -> Origin {
    // As an IPv6 listener sees an IPv4 caller.
    let address = format!("::ffff:{FROM}").parse().unwrap();
    Origin { address, request: RequestId::parse(REQUEST.as_bytes()).unwrap(), device: Device::default() }
}

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

fn patch(body: Value) -> PatchSettings {
    PatchSettings(body.as_object().unwrap().clone())
}

#[test]
fn every_change_is_in_the_log_with_the_change_and_without_a_secret() {
    TestApp::on_both(|app| {
        let mut managing = Managing { app, secrets: Vec::new() };
        let before = managing.log().len();
        settings_and_keys(&mut managing);
        people(&mut managing);
        webhooks(&mut managing);
        channels(&mut managing);
        exchange_rates(&mut managing);
        views(&mut managing);
        let log = managing.log().split_off(before);
        assert!(log.len() >= 25, "{}", log.len());
        for entry in &log {
            assert_eq!(entry.address.as_deref(), Some(FROM), "{entry:?}");
            assert_eq!(entry.request_id.as_deref(), Some(REQUEST), "{entry:?}");
            assert_ne!(entry.actor, Actor::System, "{entry:?}");
        }
        let whole = format!("{log:?}");
        assert!(managing.secrets.len() >= 8);
        for secret in &managing.secrets {
            assert!(!whole.contains(&secret[8..]), "a secret is in the audit log");
        }
    });
}

/// Each row: the command, and the entries it leaves.
fn expect(managing: &Managing, known: usize, expected: Value) {
    let found: Vec<Value> =
        managing.since(known).into_iter().map(|(action, detail)| json!([action, detail])).collect();
    assert_eq!(Value::Array(found), expected);
}

fn settings_and_keys(managing: &mut Managing) {
    let known = managing.log().len();
    managing.run(patch(json!({"cadence_days": 10, "digest_weekday": "friday", "time_zone": "UTC"})));
    managing.run(patch(json!({"cadence_days": 10})));
    managing.run(patch(json!({"tracked_stages": ["customer"]})));
    expect(
        managing,
        known,
        json!([
            ["settings.changed", {
                "cadence_days": {"from": 42, "to": 10}, "digest_weekday": {"from": "monday", "to": "friday"},
            }],
            ["settings.changed", {
                "tracked_stages": {"from": ["customer", "in_trial"], "to": ["customer"]},
            }],
        ]),
    );
    let known = managing.log().len();
    let token = managing.run(CreateToken(TokenRequest::of_company("CRM", Role::Member)));
    managing.run(RevokeToken(token.credential.id));
    let (old, shown) = (managing.run(RotateKey(Key::Ingest)), token.credential.shown.clone());
    let new = managing.run(RotateKey(Key::Ingest));
    let entries = managing.since(known);
    assert_eq!(
        entries[0],
        ("token.created".to_owned(), json!({"name": "CRM", "role": "member", "prefix": shown}))
    );
    assert_eq!(
        entries[1],
        ("token.revoked".to_owned(), json!({"name": "CRM", "role": "member", "prefix": shown}))
    );
    let prefix = json!({"prefix": {"from": old.credential.shown, "to": new.credential.shown}});
    assert_eq!(entries[3], ("ingest_key.rotated".to_owned(), prefix));
    managing.secrets.extend([token.text, old.text, new.text]);
}

fn people(managing: &mut Managing) {
    let known = managing.log().len();
    let bo = managing.app.employ("bo@acme.test", "Bo", Role::Member).person;
    let change = |role, active| ChangeMember { person: bo, role, active };
    managing.run(change(Some(Role::Admin), None));
    managing.run(change(Some(Role::Admin), Some(true)));
    managing.run(change(None, Some(false)));
    managing.run(change(None, Some(true)));
    let reset = managing.run(SendReset(bo)).expect("a link");
    managing.run(RemoveMember(bo));
    expect(
        managing,
        known,
        json!([
            ["member.changed", {"role": {"from": "member", "to": "admin"}}],
            ["member.changed", {"active": {"from": true, "to": false}}],
            ["member.changed", {"active": {"from": false, "to": true}}],
            ["password_reset.sent", {"email": "bo@acme.test", "by_hand": true}],
            ["member.removed", {"email": "bo@acme.test", "role": "admin"}],
        ]),
    );
    managing.secrets.push(secret_of(&reset));
    invitations(managing);
}

fn secret_of(link: &str) -> String {
    link.rsplit('/').next().unwrap().to_owned()
}

fn invitations(managing: &mut Managing) {
    let known = managing.log().len();
    let revoked = managing.run(Invite { email: email("cy@acme.test"), name: None, role: Role::Member });
    let resent = managing.run(ResendInvitation(revoked.invitation.id));
    managing.run(RevokeInvitation(revoked.invitation.id));
    let accepted = managing.run(Invite { email: email("di@acme.test"), name: None, role: Role::Admin });
    let token = secret_of(accepted.link.as_ref().unwrap());
    let services = managing.app.app().services();
    let offer = block_on(Offer::look(managing.app.app(), &token)).unwrap();
    let access = offer.access();
    let (name, password) = (Some("Di".to_owned()), "the password of Di".to_owned());
    let accept = offer.answer(services, Acceptance { token, name, password, login: None }).unwrap();
    let di = managing.try_run(&access, accept).unwrap();
    let reset = secret_of(&managing.run(SendReset(di.person)).unwrap());
    let open = block_on(OpenReset::look(managing.app.app(), &reset)).unwrap();
    managing.try_run(&access, open.confirm("the hash of Di".to_owned())).unwrap();
    let entries = managing.since(known);
    let actions: Vec<&str> = entries.iter().map(|(action, _)| action.as_str()).collect();
    let expected = [
        "invitation.created",
        "invitation.resent",
        "invitation.revoked",
        "invitation.created",
        "invitation.accepted",
        "password_reset.sent",
        "password.changed",
    ];
    assert_eq!(actions, expected);
    assert_eq!(entries[0].1, json!({"email": "cy@acme.test", "role": "member"}));
    assert_eq!(entries[4].1["email"], json!("di@acme.test"));
    let log = managing.log();
    let by_di = Actor::Person { id: di.person, name: "Di".to_owned() };
    assert_eq!((&log[known + 4].actor, &log[known + 6].actor), (&by_di, &by_di));
    let links = [revoked.link, resent.link, accepted.link].map(|link| secret_of(&link.unwrap()));
    managing.secrets.extend(links);
    managing.secrets.extend([reset, "the password of Di".to_owned(), "the hash of Di".to_owned()]);
}

fn webhooks(managing: &mut Managing) {
    let known = managing.log().len();
    let body = json!({"url": "https://example.com/a", "events": ["account.created"]});
    let made = managing.run(create_webhook(managing.app.app(), &body));
    let id = made.webhook.id;
    let app = managing.app.app();
    let edit = |body: Value| patch_webhook(app, id, &body);
    managing.run(edit(json!({"url": "https://example.com/b", "description": "CRM"})));
    managing.run(edit(json!({"description": "CRM"})));
    let headers = |value: &str| json!([{ "name": "Authorization", "value": value }]);
    managing.run(edit(json!({"filters": {"to": "lost"}, "headers": headers("Bearer first-hush")})));
    managing.run(edit(json!({"filters": {"to": "lost"}, "headers": headers("Bearer second-hush")})));
    managing.run(edit(json!({"headers": [{"name": "Authorization"}]})));
    let rotated = managing.run(RotateSecret(id));
    managing.run(DisableWebhook(id));
    managing.run(DisableWebhook(id));
    let test = managing.run(TestWebhook(id));
    managing.run(EnableWebhook { id, held: Held::Drop });
    managing.run(DeleteWebhook(id));
    expect(
        managing,
        known,
        json!([
            ["webhook.created", {
                "url": "https://example.com/a", "events": "account.created", "description": "",
            }],
            ["webhook.changed", {
                "url": {"from": "https://example.com/a", "to": "https://example.com/b"},
                "description": {"from": "", "to": "CRM"},
            }],
            ["webhook.changed", {
                "filter_to": {"from": null, "to": ["lost"]},
                "headers": {"from": null, "to": ["Authorization: ****"]},
            }],
            ["webhook.changed", {"replaced_headers": ["authorization"]}],
            ["webhook.secret_rotated", {"prefix": rotated.shown}],
            ["webhook.disabled", {"enabled": {"from": true, "to": false}}],
            ["webhook.tested", {"delivery": test.id.to_string()}],
            ["webhook.enabled", {"enabled": {"from": false, "to": true}, "held": "drop"}],
            ["webhook.deleted", {"url": "https://example.com/b"}],
        ]),
    );
    managing.secrets.extend([made.secret, rotated.secret]);
    managing.secrets.extend(["first-hush".to_owned(), "second-hush".to_owned()]);
}

fn channels(managing: &mut Managing) {
    let known = managing.log().len();
    let code = PromoCode::parse("FAIR").unwrap();
    let channel = managing.run(CreateChannel { name: "Fair".to_owned() }).id;
    managing.run(RenameChannel { id: channel, name: "Fair 2".to_owned() });
    managing.run(AddCode { channel, code: code.clone(), archived: false });
    for archived in [true, false] {
        managing.run(ArchiveCode { channel, code: code.clone(), archived });
    }
    managing.run(DeleteCode { channel, code });
    managing.run(DeleteChannel(channel));
    expect(
        managing,
        known,
        json!([
            ["channel.created", {"name": "Fair"}],
            ["channel.renamed", {"name": {"from": "Fair", "to": "Fair 2"}}],
            ["promo_code.created", {"code": "FAIR"}],
            ["promo_code.archived", {"code": "FAIR"}],
            ["promo_code.restored", {"code": "FAIR"}],
            ["promo_code.deleted", {"code": "FAIR"}],
            ["channel.deleted", {"name": "Fair 2"}],
        ]),
    );
}

fn exchange_rates(managing: &mut Managing) {
    let known = managing.log().len();
    let rate = json!({"currency": "CHF", "valid_from": "2026-01-01", "rate": "1.10"});
    let rate = NewRate::parse(rate.as_object().unwrap()).unwrap();
    let id = managing.run(AddRate { rate, base: None }).id;
    for body in [json!({"rate": "1.12"}), json!({"rate": "1.12"}), json!({"valid_from": "2026-02-01"})] {
        managing.run(ChangeRate { id, patch: RatePatch::parse(body.as_object().unwrap()).unwrap() });
    }
    managing.run(DeleteRate(id));
    expect(
        managing,
        known,
        json!([
            ["exchange_rate.created", {
                "currency": "CHF", "base_currency": "USD", "valid_from": "2026-01-01", "rate": "1.1",
            }],
            ["exchange_rate.changed", {"currency": "CHF", "rate": {"from": "1.1", "to": "1.12"}}],
            ["exchange_rate.changed", {
                "currency": "CHF", "valid_from": {"from": "2026-01-01", "to": "2026-02-01"},
            }],
            ["exchange_rate.deleted", {
                "currency": "CHF", "base_currency": "USD", "valid_from": "2026-02-01", "rate": "1.12",
            }],
        ]),
    );
}

fn views(managing: &mut Managing) {
    let known = managing.log().len();
    let save =
        |query: &str, replace| SaveView(Save { name: "Lost".to_owned(), query: query.to_owned(), replace });
    managing.run(save("status=lost", false));
    managing.run(save("q=a", true));
    managing.run(save("q=a", true));
    managing.run(RenameView { from: "lost".to_owned(), to: "Gone".to_owned() });
    managing.run(DeleteView("gone".to_owned()));
    expect(
        managing,
        known,
        json!([
            ["view.saved", {"query": "status=lost"}],
            ["view.changed", {"query": {"from": "status=lost", "to": "q=a"}}],
            ["view.renamed", {"name": {"from": "Lost", "to": "Gone"}}],
            ["view.deleted", {"query": "q=a"}],
        ]),
    );
    let targets: Vec<Option<String>> =
        managing.log().split_off(known).into_iter().map(|entry| entry.target).collect();
    assert_eq!(targets, ["Lost", "Lost", "Lost", "Gone"].map(|name| Some(name.to_owned())));
}

/// The same changes to an account, by anyone. Returns it.
fn work(managing: &Managing, access: &Access) -> AccountId {
    fn object(body: Value) -> serde_json::Map<String, Value> {
        body.as_object().unwrap().clone()
    }
    let create =
        Create::parse(&object(json!({"name": "Acme", "custom_fields": {"plan": "pro", "seats": 5}})));
    let created = managing.try_run(access, CreateAccount(create.unwrap())).unwrap().reply;
    let (id, kept) = (created.id, email("ceo@client.test"));
    let edit = |body: Value| {
        let (patch, promo_code) = Patch::parse(&object(body)).unwrap();
        managing.try_run(access, PatchAccount { id, patch, promo_code }).unwrap();
    };
    edit(json!({"name": "Acme 2", "cadence_days": 7, "custom_fields": {"plan": "team", "seats": null}}));
    edit(json!({"name": "Acme 2"}));
    let change = StatusChange { status: Status::Lost, note: None };
    managing.try_run(access, ChangeStatus { id, change }).unwrap();
    managing.try_run(access, AddAddress { account: id, address: kept.clone() }).unwrap();
    managing.try_run(access, AddAddress { account: id, address: kept.clone() }).unwrap();
    managing.try_run(access, RemoveAddress { account: id, address: kept }).unwrap();
    let patch = Patch { status: Some(Status::Customer), ..Patch::default() };
    let change = BulkChange { accounts: vec![id], patch, promo_code: None, note: None };
    managing.try_run(access, ChangeAccounts(change.clone())).unwrap();
    managing.try_run(access, ChangeAccounts(change)).unwrap();
    managing.try_run(access, DeleteAccount(id)).unwrap();
    id
}

#[test]
fn what_people_do_to_accounts_is_recorded_and_of_programs_only_deletions_and_bulk_moves() {
    TestApp::on_both(|app| {
        let managing = Managing { app, secrets: Vec::new() };
        let (person, bo) = logged_in(app, "bo@acme.test", Role::Member);
        app.set(json!({"delete_role": "member"}));
        let known = managing.log().len();
        let account = work(&managing, &bo);
        let both = [
            json!(["account.address_removed", {"email": "ceo@client.test"}]),
            json!(["account.moved_in_bulk", {
                "accounts": 1, "status": {"from": {"lost": 1}, "to": {"customer": 1}},
            }]),
            json!(["account.deleted", {
                "name": "Acme 2", "imported_id": null, "status": "customer",
                "removed": {"account": 1, "bulk_change": 1, "status_history": 3},
            }]),
        ];
        let by_hand = [
            json!(["account.created", {"name": "Acme", "status": "prospect"}]),
            json!(["account.changed", {
                "name": {"from": "Acme", "to": "Acme 2"}, "cadence_days": {"from": null, "to": 7},
                "custom_fields.plan": {"from": "pro", "to": "team"},
                "custom_fields.seats": {"from": 5, "to": null},
            }]),
            json!(["account.changed", {"status": {"from": "prospect", "to": "lost"}}]),
            json!(["account.address_added", {"email": "ceo@client.test"}]),
        ];
        expect(&managing, known, Value::Array([by_hand.as_slice(), both.as_slice()].concat()));
        for entry in managing.log().split_off(known) {
            assert_eq!(entry.actor, Actor::Person { id: person, name: "Bo".to_owned() });
            let is_bulk = entry.action == "account.moved_in_bulk";
            assert_eq!(entry.target, (!is_bulk).then(|| account.to_string()), "{entry:?}");
        }
        let known = managing.log().len();
        work(&managing, app.token());
        expect(&managing, known, Value::Array(both.to_vec()));
        let known = managing.log().len();
        app.upsert(json!({"imported_id": "crm-1", "status": "customer"}));
        app.upsert(json!({"imported_id": "crm-1", "name": "x", "status": "lost"}));
        app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}]));
        assert_eq!(managing.log().len(), known, "upsert and ingest write no entries");
    });
}

#[test]
fn an_erased_account_keeps_its_entries_without_its_values() {
    TestApp::on_both(|app| {
        let managing = Managing { app, secrets: Vec::new() };
        let (_, bo) = logged_in(app, "bo@acme.test", Role::Admin);
        let kept = work(&managing, &bo);
        let known = managing.log().len();
        let account = work(&managing, &bo);
        // More than one step takes.
        for number in 0..120 {
            let email = email(&format!("ceo{number}@client.test"));
            let created = managing
                .run(CreateAccount(Create::parse(json!({"name": "Other"}).as_object().unwrap()).unwrap()));
            let id = created.reply.id;
            managing.try_run(&bo, AddAddress { account: id, address: email.clone() }).unwrap();
            raw::run(app.database(), &format!("UPDATE audit SET target = '{account}' WHERE target = '{id}'"));
        }
        let before = managing.log();
        // Also when nothing but the log knows the account.
        raw::run(app.database(), "DELETE FROM event");
        block_on(erase_payloads(app.app(), app.token(), account)).unwrap();
        let after = managing.log();
        assert_eq!(after.len(), before.len() + 1, "the erasure itself is recorded");
        for (was, is) in before.iter().zip(&after) {
            let is_erased = was.target.as_deref() == Some(account.to_string().as_str());
            assert_eq!((&is.id, &is.actor, &is.action), (&was.id, &was.actor, &was.action));
            assert_eq!((&is.target, is.at, &is.address), (&was.target, was.at, &was.address));
            if !is_erased {
                assert_eq!(is.detail, was.detail, "of another account, or of none");
            }
        }
        let mine =
            after[known..].iter().filter(|entry| entry.target.as_deref() == Some(&account.to_string()));
        let text: String = mine.map(|entry| entry.detail.clone()).collect();
        for value in ["Acme", "client.test", "pro", "team", "customer", "lost"] {
            assert!(!text.contains(value), "{value} in {text}");
        }
        assert!(text.contains("custom_fields.plan") && text.contains("erased"), "{text}");
        assert!(
            before
                .iter()
                .any(|entry| entry.target == Some(kept.to_string()) && entry.detail.contains("Acme"))
        );
    });
}

#[test]
fn exports_are_recorded_with_their_filter() {
    TestApp::on_both(|app| {
        let managing = Managing { app, secrets: Vec::new() };
        let known = managing.log().len();
        let filter = format!("q={}", "x".repeat(2_000));
        managing.run(RecordExport { what: Exported::Accounts, format: "csv", filter });
        managing.run(RecordExport { what: Exported::Audit, format: "jsonl", filter: String::new() });
        let entries = managing.since(known);
        assert_eq!(entries[0].0, "account.exported");
        assert_eq!(entries[0].1["filter"].as_str().unwrap().len(), 1_000);
        assert_eq!(entries[1], ("audit.exported".to_owned(), json!({"format": "jsonl"})));
    });
}

#[test]
fn a_failed_login_is_recorded_where_the_person_works_and_once_a_minute() {
    TestApp::on_both(|app| {
        let (globex, initech) = (app.company("globex"), app.company("initech"));
        let (bo, _) = logged_in(app, "bo@acme.test", Role::Member);
        logged_in(&globex, "bo@acme.test", Role::Member);
        let (of_initech, _) = logged_in(&initech, "bo@acme.test", Role::Member);
        let leave = ChangeMember { person: of_initech, role: None, active: Some(false) };
        initech.write_as(&Access::CommandLine(initech.id()), leave).unwrap();
        let failures = |company: &TestCompany| {
            let page = company.read(|snapshot| {
                let filter = Filter::parse(json!({"action": "session.failed"}).as_object().unwrap());
                rapport_store::audit::list(snapshot, &filter.unwrap(), None, 100)
            });
            page.items
        };
        let fail =
            |address: &str| block_on(failed_login::record(app.app(), email(address), origin())).unwrap();
        fail("bo@acme.test");
        fail("bo@acme.test");
        fail("nobody@acme.test");
        let found = failures(app);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&found[0].actor, &found[0].target), (&Actor::System, &Some(bo.to_string())));
        assert_eq!(found[0].detail, json!({"email": "bo@acme.test"}).to_string());
        assert_eq!(
            (found[0].address.as_deref(), found[0].request_id.as_deref()),
            (Some(FROM), Some(REQUEST))
        );
        assert_eq!((failures(&globex).len(), failures(&initech).len()), (1, 0));
        app.clock().advance_seconds(60);
        fail("bo@acme.test");
        assert_eq!((failures(app).len(), failures(&globex).len()), (2, 2));
    });
}

#[test]
fn a_refusal_is_recorded_once_a_minute() {
    TestApp::on_both(|app| {
        let managing = Managing { app, secrets: Vec::new() };
        let (person, bo) = logged_in(app, "bo@acme.test", Role::Member);
        let Access::Credential(by) = bo else { panic!("{bo:?}") };
        let known = managing.log().len();
        let refuse = || {
            let refused = Refused { by, origin: origin(), reason: "this requires the admin role".to_owned() };
            block_on(refusal::record(app.app(), refused, "GET /settings".to_owned())).unwrap();
        };
        refuse();
        refuse();
        let detail = json!({"request": "GET /settings", "reason": "this requires the admin role"});
        expect(&managing, known, json!([["request.refused", detail]]));
        assert_eq!(managing.log()[known].actor, Actor::Person { id: person, name: "Bo".to_owned() });
        app.clock().advance_seconds(60);
        refuse();
        assert_eq!(managing.log().len(), known + 2);
    });
}

#[test]
fn the_command_line_has_no_address() {
    TestApp::on_both(|app| {
        app.write_as(&Access::CommandLine(app.id()), RotateKey(Key::Ingest)).unwrap();
        let page = app.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1));
        assert_eq!((&page.items[0].actor, &page.items[0].address), (&Actor::CommandLine, &None));
    });
}
