//! Settings, and the audit log of everything that is managed.

use rapport_app::channel::{ArchiveCode, DeleteChannel, DeleteCode, RenameChannel};
use rapport_app::credential::{CreateToken, Key, RevokeToken, RotateKey};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::settings::PatchSettings;
use rapport_domain::audit::Filter;
use rapport_domain::channel::PromoCode;
use rapport_domain::company::{Company, time_zone_name};
use rapport_domain::credential::TokenRequest;
use rapport_domain::history::Actor;
use rapport_domain::member::Role;
use rapport_domain::right::{Grant, Grants};
use rapport_store::audit::AuditEntry;
use rapport_testkit::{TestApp, TestCompany};
use serde_json::{Value, json};

use crate::refusal;

fn patch(body: Value) -> PatchSettings {
    PatchSettings(body.as_object().unwrap().clone())
}

fn company(company: &TestCompany) -> Company {
    company.read(rapport_store::company::get).expect("the company")
}

/// The audit log, oldest first.
fn audit(company: &TestCompany) -> Vec<AuditEntry> {
    let page = company.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 1000));
    page.items.into_iter().rev().collect()
}

#[test]
fn a_new_company_has_the_decided_defaults() {
    TestApp::on_both(|app| {
        let settings = company(app).settings;
        assert_eq!(
            (settings.cadence_days, settings.tracked_stages.to_stored().as_str()),
            (42, "customer,in_trial")
        );
        assert_eq!((settings.digest_enabled, settings.digest_weekday.as_str()), (true, "monday"));
        assert_eq!((time_zone_name(&settings.time_zone), settings.default_currency.code()), ("UTC", "USD"));
        assert_eq!(settings.grants, Grants { export: Grant::Admins, delete: Grant::Admins });
    });
}

#[test]
fn a_company_is_renamed_and_keeps_its_short_name() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let renamed = app.write(patch(json!({"name": "Acme & Sons", "cadence_days": 7}))).unwrap();
        assert_eq!((company(app), renamed.slug.as_str()), (renamed.clone(), "acme"));
        assert_eq!((renamed.name.as_str(), renamed.settings.cadence_days), ("Acme & Sons", 7));
        let entry = audit(app).pop().unwrap();
        let detail =
            json!({"name": {"from": "acme", "to": "Acme & Sons"}, "cadence_days": {"from": 42, "to": 7}});
        assert_eq!(entry.action, "settings.changed");
        assert_eq!(serde_json::from_str::<Value>(&entry.detail).unwrap(), detail);
        app.write(patch(json!({"name": "Acme & Sons"}))).unwrap();
        assert_eq!(audit(app).pop().unwrap(), entry, "nothing changed, nothing is recorded");
        assert_eq!(refusal(app.write(patch(json!({"name": ""})))), "invalid /name empty");
        assert_eq!(company(&globex).name, "globex");
    });
}

#[test]
fn a_change_of_settings_is_stored_and_leaves_the_rest() {
    TestApp::on_both(|app| {
        let changed =
            app.write(patch(json!({"cadence_days": 3650, "time_zone": "America/Sao_Paulo"}))).unwrap();
        assert_eq!(company(app), changed);
        let all = json!({
            "tracked_stages": ["in_negotiation"], "digest_enabled": false, "digest_weekday": "sunday",
            "default_currency": "eur", "export_role": "member",
        });
        app.write(patch(all)).unwrap();
        let settings = company(app).settings;
        assert_eq!(
            (settings.cadence_days, settings.tracked_stages.to_stored().as_str()),
            (3650, "in_negotiation")
        );
        assert_eq!((settings.digest_enabled, settings.digest_weekday.as_str()), (false, "sunday"));
        assert_eq!(time_zone_name(&settings.time_zone), "America/Sao_Paulo");
        assert_eq!(settings.default_currency.code(), "EUR");
        assert_eq!(settings.grants, Grants { export: Grant::Members, delete: Grant::Admins });
        assert_eq!(
            company(&app.company("globex")).settings.cadence_days,
            42,
            "another company's settings stay the same"
        );
    });
}

#[test]
fn a_refused_change_names_every_fault_and_changes_nothing() {
    TestApp::on_both(|app| {
        let body =
            json!({"cadence_days": 0, "tracked_stages": [], "time_zone": "Mars", "digest_weekday": "sunday"});
        let faults =
            "invalid /cadence_days out_of_range, /tracked_stages empty, /time_zone unknown_time_zone";
        assert_eq!(refusal(app.write(patch(body))), faults);
        assert_eq!(company(app).settings.digest_weekday.as_str(), "monday");
        assert_eq!(audit(app).len(), 1, "only the company's own creation");
    });
}

#[test]
fn settings_act_on_what_comes_after_them() {
    TestApp::on_both(|app| {
        app.set(json!({"tracked_stages": ["in_negotiation"], "default_currency": "JPY"}));
        let negotiating =
            app.upsert(json!({"imported_id": "a", "status": "in_negotiation", "captured_value": 5}));
        assert_eq!(negotiating.account.tracked_since, Some(app.clock().now()));
        assert_eq!(negotiating.account.value.unwrap().currency.code(), "JPY");
        let customer = app.upsert(json!({"imported_id": "b", "status": "customer"})).account;
        assert!(!customer.due(&company(app).settings, app.clock().now()).tracked);
    });
}

#[test]
fn everything_managed_is_in_the_audit_log_with_its_actor_and_without_a_secret() {
    TestApp::on_both(|app| {
        let code = |text: &str| PromoCode::parse(text).unwrap();
        app.set(json!({"cadence_days": 10}));
        app.set(json!({"cadence_days": 10}));
        let token = app.write(CreateToken(TokenRequest::of_company("CRM", Role::Member))).unwrap();
        app.write(RevokeToken(token.credential.id)).unwrap();
        let ingest = app.write(RotateKey(Key::Ingest)).unwrap();
        let inbound = app.write(RotateKey(Key::Inbound)).unwrap();
        let channel = app.channel("Fair", &["FAIR"]).id;
        app.write(RenameChannel { id: channel, name: "Fair 2".to_owned() }).unwrap();
        for archived in [true, false] {
            app.write(ArchiveCode { channel, code: code("fair"), archived }).unwrap();
        }
        app.write(DeleteCode { channel, code: code("fair") }).unwrap();
        app.write(DeleteChannel(channel)).unwrap();
        let ana = app.employ("ana@acme.test", "Ana", Role::Member).person;
        app.write(ChangeMember { person: ana, role: Some(Role::Admin), active: None }).unwrap();
        app.write(RemoveMember(ana)).unwrap();
        let log = audit(app);
        let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
        let expected = [
            "company.created",
            "settings.changed",
            "token.created",
            "token.revoked",
            "ingest_key.rotated",
            "inbound_key.rotated",
            "channel.created",
            "promo_code.created",
            "channel.renamed",
            "promo_code.archived",
            "promo_code.restored",
            "promo_code.deleted",
            "channel.deleted",
            "member.changed",
            "member.removed",
        ];
        assert_eq!(actions, expected, "each once, and no entry for a change without effect");
        assert_eq!(log[0].actor, Actor::CommandLine);
        assert!(
            log[1..]
                .iter()
                .all(|entry| matches!(&entry.actor, Actor::Token { name, .. } if name == "First token"))
        );
        assert!(log.iter().all(|entry| entry.at == app.clock().now()));
        let whole = format!("{log:?}");
        let secrets = [app.token_text(), app.ingest_key_text(), &token.text, &ingest.text, &inbound.text];
        for secret in secrets.into_iter().chain(["the-hash-of-a-password"]) {
            assert!(!whole.contains(&secret[8..]), "a secret is in the audit log");
        }
    });
}

#[test]
fn what_is_refused_is_not_in_the_audit_log() {
    TestApp::on_both(|app| {
        app.channel("Fair", &["FAIR"]);
        let before = audit(app).len();
        let taken = rapport_app::channel::CreateChannel { name: "fair".to_owned() };
        assert_eq!(refusal(app.write(taken)), "conflict name_taken");
        let member = app.token_of(Role::Member);
        assert_eq!(
            refusal(app.write_as(&member, patch(json!({"cadence_days": 5})))),
            "forbidden role_required"
        );
        assert_eq!(audit(app).len(), before + 1, "only the token is logged");
    });
}
