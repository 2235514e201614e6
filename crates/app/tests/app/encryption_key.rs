//! The encryption key: one for every process on a database, and changed without a pause.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use rapport_app::encryption_key::{
    AT_ONCE, ChangeKey, FinishChange, Fit, Reencrypt, adopt, columns, examine,
};
use rapport_app::invitation::Invite;
use rapport_app::member::RemoveMember;
use rapport_app::session::{Proven, read_cookie};
use rapport_app::sso::settings::PutSso;
use rapport_app::totp::SetUpApp;
use rapport_app::vault::{Key, Owner, fingerprint};
use rapport_app::{Access, Command, Outside, Vault};
use rapport_domain::member::{Email, Role};
use rapport_domain::sso::Change;
use rapport_store::sealed;
use rapport_testkit::{Engine, TestApp, block_on, create_webhook};
use serde_json::json;

use crate::mail::take;
use crate::repeats::creating_token;

const OLD: Key = [1; 32];
const NEW: Key = [2; 32];

/// Processes that know the old key, and read the others from a file that the rule changes.
fn on_both_with_keys(rule: impl Fn(&TestApp, &Mutex<Vec<Key>>)) {
    for engine in Engine::BOTH {
        eprintln!("on {engine}");
        let file = Arc::new(Mutex::new(vec![OLD]));
        let source = Arc::clone(&file);
        let app = TestApp::with(engine, move |parts| {
            let source = Arc::clone(&source);
            parts.vault = Vault::reading(&[OLD], move || Ok(source.lock().unwrap().clone()));
            parts.outside = Outside { mail_configured: true, ..Outside::default() };
        });
        adopt(app.app(), fingerprint(&OLD)).unwrap();
        rule(&app, &file);
    }
}

fn add_webhook(app: &TestApp) -> bool {
    let headers = json!([{ "name": "Authorization", "value": "Bearer s" }]);
    let body = json!({"url": "https://example.com/hook", "events": ["account.created"], "headers": headers});
    app.write(create_webhook(app.app(), &body)).is_ok()
}

fn invite(app: &TestApp, email: &str) {
    app.write(Invite { email: Email::parse(email).unwrap(), name: None, role: Role::Member }).unwrap();
}

/// A member's authenticator app, which belongs to no company.
fn set_up_app(app: &TestApp) {
    let member = app.employ("bo@acme.test", "Bo", Role::Member);
    let proven = Proven { person: member.person, company: app.id() };
    let cookie = block_on(app.app().write(&proven.access(), proven.begin(None))).unwrap();
    app.write_as(&Access::Credential(read_cookie(&cookie).unwrap()), SetUpApp).unwrap();
    // Their login works for nobody any more, and the secret is still theirs.
    app.write(RemoveMember(member.person)).unwrap();
}

fn set_up_sso(app: &TestApp) {
    let settings = json!({
        "issuer": "https://login.acme.test", "client_id": "rapport", "client_secret": "s", "domains": ["acme.test"],
    });
    app.write(PutSso(Change::parse(settings.as_object().unwrap()).unwrap())).unwrap();
}

fn as_operator<C: Command>(app: &TestApp, access: &Access, command: C) -> C::Reply {
    block_on(app.app().write(access, command)).unwrap()
}

fn change(app: &TestApp) {
    let command = ChangeKey { from: fingerprint(&OLD), to: fingerprint(&NEW) };
    as_operator(app, &Access::NO_COMPANY, command);
}

/// Re-encrypts a column to its end; returns how many secrets changed.
fn reencrypt(app: &TestApp, column: Owner) -> usize {
    let (mut after, mut changed) = (Some(column), 0);
    while let Some(owner) = after {
        let step = Reencrypt { after: owner, to: fingerprint(&NEW) };
        let done = as_operator(app, &Access::CommandLine(app.id()), step);
        assert!(done.unreadable.is_empty());
        changed += done.changed;
        after = done.next;
    }
    changed
}

/// The keys that a column's secrets are encrypted under.
fn keys_of(app: &TestApp, column: Owner) -> BTreeSet<String> {
    let both = Vault::reading(&[OLD, NEW], || Ok(Vec::new()));
    let found = app.read(move |snapshot| sealed::after(snapshot, column, 1000));
    let secrets = found.into_iter().filter_map(|sealed| Some((sealed.owner, sealed.secret?)));
    secrets.map(|(owner, secret)| both.opened(owner, &secret).unwrap().1).collect()
}

#[test]
fn a_change_reaches_every_encrypted_column_step_by_step() {
    on_both_with_keys(|app, file| {
        let many = usize::try_from(AT_ONCE).unwrap() + 1;
        for _ in 0..many {
            assert!(add_webhook(app));
        }
        invite(app, "ana@acme.test");
        set_up_app(app);
        set_up_sso(app);
        app.write(creating_token()).unwrap();
        let (old, new) = (BTreeSet::from([fingerprint(&OLD)]), BTreeSet::from([fingerprint(&NEW)]));
        for column in Owner::BEFORE_ALL {
            assert_eq!(keys_of(app, column), old, "every column has something to re-encrypt");
        }

        app.company("globex");
        let listed = columns(app.app()).unwrap();
        assert_eq!(listed.len(), 11, "five columns of each company, and once that of people");
        *file.lock().unwrap() = vec![OLD, NEW];
        change(app);
        assert!(add_webhook(app));
        let [webhooks, headers, links, apps, clients, responses] = Owner::BEFORE_ALL;
        assert_eq!(keys_of(app, webhooks).len(), 2, "what is new is under the new key");
        assert_eq!(reencrypt(app, webhooks), many);
        assert_eq!(reencrypt(app, webhooks), 0, "a second run finds nothing left");
        assert_eq!((keys_of(app, webhooks), keys_of(app, links)), (new.clone(), old.clone()));
        assert_eq!(keys_of(app, apps), old);
        assert_eq!(reencrypt(app, headers), many);
        assert_eq!(reencrypt(app, links), 1);
        assert_eq!(reencrypt(app, apps), 1);
        assert_eq!(reencrypt(app, clients), 1);
        assert_eq!(reencrypt(app, responses), 1);
        for owner in [headers, links, apps, clients, responses] {
            assert_eq!(keys_of(app, owner), new);
        }
        as_operator(app, &Access::NO_COMPANY, FinishChange(fingerprint(&NEW)));

        *file.lock().unwrap() = vec![NEW];
        assert!(take(app).remove(0).plain.contains("rjn_"), "the link can still be sent");
        let fit = examine(app.app()).unwrap();
        assert!(matches!(fit, Fit::Known(noted) if noted.previous.is_none()));
    });
}

#[test]
fn a_process_without_the_new_key_encrypts_nothing_until_it_finds_it() {
    on_both_with_keys(|app, file| {
        change(app);
        assert!(!add_webhook(app), "the old key must not be used any more");
        assert_eq!(app.rows("webhook"), 0);
        assert_eq!(examine(app.app()).unwrap(), Fit::Missing(vec![fingerprint(&NEW)]));
        *file.lock().unwrap() = vec![OLD, NEW];
        assert!(add_webhook(app));
    });
}

#[test]
fn the_first_key_stays_the_only_one() {
    on_both_with_keys(|app, _| {
        adopt(app.app(), fingerprint(&NEW)).unwrap();
        assert!(
            matches!(examine(app.app()).unwrap(), Fit::Known(noted) if noted.fingerprint == fingerprint(&OLD))
        );
        assert_eq!(app.rows("encryption_key"), 1);
    });
}
