//! Tokens and keys: roles, rotation and revocation that apply immediately, and what the records show.

use std::collections::HashMap;

use rapport_app::Access;
use rapport_app::account::CreateAccount;
use rapport_app::channel::CreateChannel;
use rapport_app::company::{CreateCompany, OwnerLogin};
use rapport_app::credential::{CreateToken, Key, NewCredential, NoteUses, RevokeToken, RotateKey};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::settings::PatchSettings;
use rapport_domain::account::Create;
use rapport_domain::audit::Filter;
use rapport_domain::company::Slug;
use rapport_domain::credential::{self, Kind, TokenRequest};
use rapport_domain::id::{CredentialId, PersonId};
use rapport_domain::member::{Email, Role};
use rapport_domain::right::Right;
use rapport_testkit::{Engine, TestApp, TestCompany, block_on};
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
        let made = app.write(CreateToken(TokenRequest::of_company("CRM", Role::Member))).unwrap();
        let token = access(&made);
        assert!(app.write_as(&token, an_account()).is_ok());
        assert!(node.write_blocking(&token, an_account()).is_ok());
        app.write(RevokeToken(made.credential.id)).unwrap();
        assert_eq!(refusal(app.write_as(&token, an_account())), "unauthenticated");
        assert_eq!(refusal(node.write_blocking(&token, an_account())), "unauthenticated");
        let needs = rapport_app::Needs::Right(Right::Read);
        let read = app.app().read(&token, needs, |snapshot, _| rapport_store::channel::list(snapshot));
        assert_eq!(refusal(block_on(read)), "unauthenticated");
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
        let made = block_on(rapport_testkit::all(rotations));
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
        let token = || CreateToken(TokenRequest::of_company("x", Role::Member));
        assert_eq!(refusal(app.write_as(&member, token())), forbidden);
        let admin = app.token_of(Role::Admin);
        assert!(app.write_as(&admin, a_channel("x")).is_ok());
        assert!(app.write_as(&admin, token()).is_ok());
        let higher = CreateToken(TokenRequest::of_company("x", Role::Owner));
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
    let made = app.write(CreateToken(TokenRequest::of_company("CRM", Role::Member))).unwrap();
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

fn token_for(person: PersonId, role: Role) -> TokenRequest {
    TokenRequest { person: Some(person), ..TokenRequest::of_company("Theirs", role) }
}

fn change(person: PersonId, role: Option<Role>, active: Option<bool>) -> ChangeMember {
    ChangeMember { person, role, active }
}

#[test]
fn a_persons_token_never_does_more_than_the_person_may_now() {
    TestApp::on_both(|app| {
        let ana = app.employ("ana@acme.test", "Ana", Role::Admin).person;
        let token = access(&app.write(CreateToken(token_for(ana, Role::Admin))).unwrap());
        assert!(app.write_as(&token, a_channel("one")).is_ok());
        app.write(change(ana, Some(Role::Member), None)).unwrap();
        assert_eq!(refusal(app.write_as(&token, a_channel("two"))), "forbidden role_required");
        assert!(app.write_as(&token, an_account()).is_ok());
        app.write(change(ana, Some(Role::Owner), None)).unwrap();
        assert!(app.write_as(&token, a_channel("two")).is_ok());
        let higher = CreateToken(TokenRequest::of_company("x", Role::Owner));
        assert_eq!(
            refusal(app.write_as(&token, higher)),
            "forbidden role_required",
            "it is still an admin's"
        );
    });
}

#[test]
fn a_persons_tokens_end_with_their_membership_and_stay_ended() {
    TestApp::on_both(|app| {
        let ana = app.employ("ana@acme.test", "Ana", Role::Admin).person;
        let make = || access(&app.write(CreateToken(token_for(ana, Role::Member))).unwrap());
        let of_company = app.token_of(Role::Member);
        let first = make();
        app.write(change(ana, None, Some(false))).unwrap();
        assert_eq!(refusal(app.write_as(&first, an_account())), "unauthenticated", "deactivated");
        app.write(change(ana, None, Some(true))).unwrap();
        assert_eq!(refusal(app.write_as(&first, an_account())), "unauthenticated", "it doesn't come back");
        let second = make();
        assert!(app.write_as(&second, an_account()).is_ok());
        app.write(RemoveMember(ana)).unwrap();
        assert_eq!(refusal(app.write_as(&second, an_account())), "unauthenticated", "removed");
        assert!(app.write_as(&of_company, an_account()).is_ok(), "the company's tokens stay");
        let log = app.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 100));
        let revoked: Vec<&str> = log
            .items
            .iter()
            .filter(|entry| entry.action == "token.revoked")
            .map(|entry| entry.detail.as_str())
            .collect();
        assert_eq!(revoked.len(), 2);
        assert!(revoked.iter().all(|detail| detail.contains(r#""owner":"Ana""#)), "{revoked:?}");
    });
}

#[test]
fn a_token_for_somebody_who_is_being_removed_does_not_stay() {
    TestApp::on_both(|app| {
        for round in 0..5 {
            let person = app.employ(&format!("a{round}@acme.test"), "A", Role::Member).person;
            let (created, removed) = std::thread::scope(|scope| {
                let removing = scope.spawn(|| app.write(RemoveMember(person)));
                let created = app.write(CreateToken(token_for(person, Role::Member)));
                (created, removing.join().expect("a thread"))
            });
            removed.unwrap();
            if let Ok(made) = created {
                assert_eq!(refusal(app.write_as(&access(&made), an_account())), "unauthenticated");
            }
        }
        assert_eq!(list(app, Kind::ApiToken).len(), 1, "only the company's");
    });
}

#[test]
fn an_expired_token_is_like_one_that_never_was() {
    TestApp::on_both(|app| {
        let until = app.clock().now().plus_days(30);
        let request =
            TokenRequest { expires_at: Some(until), ..TokenRequest::of_company("CRM", Role::Member) };
        let made = app.write(CreateToken(request.clone())).unwrap();
        let token = access(&made);
        app.clock().set(until.plus_seconds(-1));
        assert!(app.write_as(&token, an_account()).is_ok());
        app.app().services().drain_uses();
        app.clock().set(until);
        assert_eq!(refusal(app.write_as(&token, an_account())), "unauthenticated");
        assert!(app.app().services().drain_uses().iter().all(|(_, id, _)| *id != made.credential.id));
        assert_eq!(list(app, Kind::ApiToken)[0].expires_at, Some(until), "it stays listed");
        let past = "invalid /expires_at in_the_past";
        assert_eq!(refusal(app.write(CreateToken(request))), past);
        let late = Some(app.clock().now().plus_days(3_651));
        let late = TokenRequest { expires_at: late, ..TokenRequest::of_company("CRM", Role::Member) };
        assert_eq!(refusal(app.write(CreateToken(late))), "invalid /expires_at out_of_range");
    });
}

#[test]
fn a_tokens_own_limit_is_kept_and_noted_when_it_is_used() {
    TestApp::on_both(|app| {
        let request = TokenRequest { rate_limit: Some(5), ..TokenRequest::of_company("CRM", Role::Member) };
        let made = app.write(CreateToken(request)).unwrap();
        assert_eq!(list(app, Kind::ApiToken)[0].rate_limit, Some(5));
        let limits = app.app().services().own_limits();
        let limit_of = |access: &Access| match access {
            Access::Credential(presented) => limits.of(&presented.hash),
            other => panic!("{other:?} is no credential"),
        };
        let (limited, unlimited) = (access(&made), app.token_of(Role::Member));
        assert_eq!(limit_of(&limited), None, "nobody used it yet");
        for token in [&limited, &unlimited] {
            assert!(app.write_as(token, an_account()).is_ok());
        }
        assert_eq!((limit_of(&limited), limit_of(&unlimited)), (Some(5), None));
    });
}

#[test]
fn only_owners_touch_the_tokens_of_owners() {
    TestApp::on_both(|app| {
        let admin = app.token_of(Role::Admin);
        let boss = app.read(rapport_store::member::list)[0].person;
        let of_boss = app.write(CreateToken(token_for(boss, Role::Member))).unwrap().credential.id;
        let powerful = app.write(CreateToken(TokenRequest::of_company("x", Role::Owner))).unwrap();
        let forbidden = "forbidden role_required";
        for id in [of_boss, powerful.credential.id] {
            assert_eq!(refusal(app.write_as(&admin, RevokeToken(id))), forbidden);
        }
        assert_eq!(refusal(app.write_as(&admin, CreateToken(token_for(boss, Role::Member)))), forbidden);
        let seen = |caller: &Access| {
            let needs = rapport_app::Needs::Right(Right::Keys);
            let found = block_on(app.app().read(caller, needs, rapport_app::read::credential::tokens));
            found.unwrap().reply.into_iter().map(|token| token.credential.id).collect::<Vec<_>>()
        };
        assert_eq!(seen(&admin).len(), 1, "only their own kind");
        assert_eq!(seen(app.token()).len(), 4);
        let ana = app.employ("ana@acme.test", "Ana", Role::Member).person;
        let of_ana = app.write_as(&admin, CreateToken(token_for(ana, Role::Member))).unwrap().credential.id;
        assert!(seen(&admin).contains(&of_ana));
        app.write(change(ana, Some(Role::Owner), None)).unwrap();
        assert!(!seen(&admin).contains(&of_ana), "its person became an owner");
        assert_eq!(refusal(app.write_as(&admin, RevokeToken(of_ana))), forbidden);
        app.write(RevokeToken(of_boss)).unwrap();
    });
}

#[test]
fn a_token_belongs_to_an_active_member_whose_role_it_does_not_exceed() {
    TestApp::on_both(|app| {
        let ana = app.employ("ana@acme.test", "Ana", Role::Member).person;
        let elsewhere = app.company("globex").employ("bo@globex.test", "Bo", Role::Owner).person;
        let away = app.employ("cy@acme.test", "Cy", Role::Member).person;
        app.write(change(away, None, Some(false))).unwrap();
        for stranger in [elsewhere, away, PersonId::from_bytes([9; 16])] {
            let refused = app.write(CreateToken(token_for(stranger, Role::Member)));
            assert_eq!(refusal(refused), "invalid /owner unknown_person");
        }
        let refused = app.write(CreateToken(token_for(ana, Role::Admin)));
        assert_eq!(refusal(refused), "invalid /role out_of_range");
    });
}
