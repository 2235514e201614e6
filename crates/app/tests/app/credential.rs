//! Tokens and keys: roles, rotation and revocation that apply immediately, and what the records show.

use std::collections::HashMap;

use rapport_app::Access;
use rapport_app::account::CreateAccount;
use rapport_app::channel::CreateChannel;
use rapport_app::company::{CreateCompany, OwnerLogin};
use rapport_app::credential::{CreateToken, Key, NewCredential, NoteUses, RevokeToken, RotateKey};
use rapport_app::settings::PatchSettings;
use rapport_domain::account::Create;
use rapport_domain::company::Slug;
use rapport_domain::credential::{self, Kind};
use rapport_domain::id::CredentialId;
use rapport_domain::member::{Email, Role};
use rapport_testkit::{Engine, TestApp, TestCompany};
use serde_json::{Map, json};

use crate::refusal;

fn access(made: &NewCredential) -> Access {
    Access::Credential(credential::read(made.credential.kind, &made.text).unwrap())
}

fn an_account() -> CreateAccount {
    CreateAccount(Create::parse(json!({"name": "One"}).as_object().unwrap()).unwrap())
}

fn a_channel(name: &str) -> CreateChannel {
    CreateChannel { name: name.to_owned() }
}

fn list(company: &TestCompany, kind: Kind) -> Vec<credential::Credential> {
    company.read(move |snapshot| rapport_store::credential::list(snapshot, kind))
}

#[test]
fn a_new_company_has_an_owners_token_and_one_ingest_key() {
    TestApp::on_both(|app| {
        let tokens = list(app, Kind::ApiToken);
        assert_eq!((tokens.len(), tokens[0].role), (1, Role::Owner));
        assert_eq!(list(app, Kind::IngestKey).len(), 1);
        assert!(app.token_text().starts_with("rap_") && app.ingest_key_text().starts_with("rik_"));
        let again = CreateCompany {
            slug: Slug::parse("acme").unwrap(),
            name: "Another".to_owned(),
            owner: Email::parse("other@acme.test").unwrap(),
            owner_name: "Other".to_owned(),
            owner_login: OwnerLogin::Invited,
        };
        assert_eq!(refusal(app.write_as(&Access::NO_COMPANY, again)), "conflict project_taken");
        assert_eq!((app.rows("company"), app.rows("person"), app.rows("credential")), (1, 1, 2));
    });
}

#[test]
fn only_the_server_itself_makes_companies() {
    TestApp::on_both(|app| {
        let make = || CreateCompany {
            slug: Slug::parse("globex").unwrap(),
            name: "Globex".to_owned(),
            owner: Email::parse("o@globex.test").unwrap(),
            owner_name: "O".to_owned(),
            owner_login: OwnerLogin::Invited,
        };
        assert_eq!(refusal(app.write(make())), "unauthenticated");
        assert_eq!(refusal(app.write_as(app.ingest_key(), make())), "unauthenticated");
        assert_eq!(app.rows("company"), 1);
    });
}

#[test]
fn a_revoked_token_is_refused_at_once_on_every_node() {
    TestApp::on_both(|app| {
        let node = app.another_node();
        let made = app.write(CreateToken { name: "CRM".to_owned(), role: Role::Member }).unwrap();
        let token = access(&made);
        assert!(app.write_as(&token, an_account()).is_ok());
        assert!(node.write_blocking(&token, an_account()).is_ok());
        app.write(RevokeToken(made.credential.id)).unwrap();
        assert_eq!(refusal(app.write_as(&token, an_account())), "unauthenticated");
        assert_eq!(refusal(node.write_blocking(&token, an_account())), "unauthenticated");
        let needs = rapport_app::Needs::Role(Role::Member);
        let read = app.app().read(&token, needs, |snapshot, _| rapport_store::channel::list(snapshot));
        assert_eq!(refusal(rapport_testkit::block_on(read)), "unauthenticated");
        assert_eq!(refusal(app.write(RevokeToken(made.credential.id))), "no such token");
        assert_eq!(app.rows("account"), 2);
    });
}

#[test]
fn a_rotated_key_is_refused_at_once_on_every_node_and_the_new_one_works() {
    TestApp::on_both(|app| {
        let node = app.another_node();
        app.upsert(json!({"imported_id": "crm-1"}));
        let batch = || {
            let body = json!({"events": [{"imported_id": "crm-1", "kind": "app_opened"}]});
            let now = app.clock().now();
            let batch = rapport_domain::activity::parse_batch(body.as_object().unwrap(), now).unwrap();
            rapport_app::ingest::Ingest { batch, received_at: now, bytes: 0 }
        };
        assert!(node.write_blocking(app.ingest_key(), batch()).is_ok());
        let fresh = app.write(RotateKey(Key::Ingest)).unwrap();
        assert_eq!(refusal(app.write_as(app.ingest_key(), batch())), "unauthenticated");
        assert_eq!(refusal(node.write_blocking(app.ingest_key(), batch())), "unauthenticated");
        assert_eq!(node.write_blocking(&access(&fresh), batch()).unwrap().accepted, 1);
        assert_eq!(list(app, Kind::IngestKey).len(), 1);
        assert_eq!(app.rows("activity"), 2);
    });
}

#[test]
fn rotations_at_the_same_instant_leave_one_key() {
    TestApp::on_both(|app| {
        let rotations = (0..20).map(|_| app.app().write(app.token(), RotateKey(Key::Ingest)));
        let made = rapport_testkit::block_on(rapport_testkit::all(rotations));
        assert!(made.into_iter().all(|made| made.is_ok()));
        assert_eq!(list(app, Kind::IngestKey).len(), 1);
    });
}

#[test]
fn an_inbound_key_is_made_by_its_first_rotation_and_leaves_the_ingest_key_alone() {
    TestApp::on_both(|app| {
        let made = app.write(RotateKey(Key::Inbound)).unwrap();
        assert!(made.text.starts_with("rin_"));
        app.upsert(json!({"imported_id": "crm-1"}));
        assert_eq!(app.ingest(json!([{"imported_id": "crm-1", "kind": "app_opened"}])).accepted, 1);
        assert_eq!(refusal(app.write_as(&access(&made), an_account())), "unauthenticated");
    });
}

#[test]
fn a_member_works_with_accounts_and_changes_no_settings_keys_or_channels() {
    TestApp::on_both(|app| {
        let member = app.token_of(Role::Member);
        assert!(app.write_as(&member, an_account()).is_ok());
        let forbidden = "forbidden role_required";
        assert_eq!(refusal(app.write_as(&member, PatchSettings(Map::new()))), forbidden);
        assert_eq!(refusal(app.write_as(&member, a_channel("x"))), forbidden);
        assert_eq!(refusal(app.write_as(&member, RotateKey(Key::Ingest))), forbidden);
        assert_eq!(refusal(app.write_as(&member, RevokeToken(CredentialId::from_bytes([1; 16])))), forbidden);
        let token = || CreateToken { name: "x".to_owned(), role: Role::Member };
        assert_eq!(refusal(app.write_as(&member, token())), forbidden);
        let admin = app.token_of(Role::Admin);
        assert!(app.write_as(&admin, a_channel("x")).is_ok());
        assert!(app.write_as(&admin, token()).is_ok());
        let higher = CreateToken { name: "x".to_owned(), role: Role::Owner };
        assert_eq!(
            refusal(app.write_as(&admin, higher)),
            forbidden,
            "a token can't have a higher role than its creator"
        );
    });
}

#[test]
fn a_credential_serves_only_as_its_own_kind_and_company() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let forged = |company: &TestCompany, with: &TestCompany| {
            let Access::Credential(presented) = with.token() else { panic!("a token") };
            Access::Credential(credential::Presented { company: company.id(), ..*presented })
        };
        assert_eq!(refusal(app.write_as(&forged(app, &globex), an_account())), "unauthenticated");
        let Access::Credential(key) = app.ingest_key() else { panic!("a key") };
        let disguised = Access::Credential(credential::Presented { kind: Kind::ApiToken, ..*key });
        assert_eq!(refusal(app.write_as(&disguised, an_account())), "unauthenticated");
        assert_eq!(app.rows("account"), 0);
    });
}

#[test]
fn the_last_use_is_written_down_and_never_goes_back() {
    TestApp::on_both(|app| {
        app.clock().advance_seconds(10);
        app.upsert(json!({"imported_id": "crm-1"}));
        let uses: HashMap<_, _> =
            app.app().services().drain_uses().into_iter().map(|(_, id, at)| (id, at)).collect();
        let token = list(app, Kind::ApiToken).remove(0);
        assert_eq!((token.last_used_at, uses.get(&token.id)), (None, Some(&app.clock().now())));
        let server = Access::System(app.id());
        let now = app.clock().now();
        app.write_as(&server, NoteUses(uses.into_iter().collect())).unwrap();
        app.write_as(&server, NoteUses(vec![(token.id, now.plus_seconds(-5))])).unwrap();
        assert_eq!(list(app, Kind::ApiToken)[0].last_used_at, Some(now));
        assert_eq!(
            refusal(app.write(NoteUses(vec![]))),
            "unauthenticated",
            "only the service itself may do this"
        );
    });
}

#[test]
fn no_credential_is_kept_in_the_clear() {
    let app = TestApp::on(Engine::Sqlite);
    let made = app.write(CreateToken { name: "CRM".to_owned(), role: Role::Member }).unwrap();
    let shown = &list(&app, Kind::ApiToken)[0].shown;
    assert!(shown.starts_with("rap_") && shown.chars().count() < 12, "{shown}");
    let rapport_store::Database::Sqlite(path) = app.database() else { panic!("SQLite") };
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for text in [app.token_text(), app.ingest_key_text(), &made.text] {
            let secret = &text.as_bytes()[20..];
            assert!(
                !bytes.windows(secret.len()).any(|window| window == secret),
                "a secret is in the database"
            );
        }
    }
}
