//! The audit log, as a table: every change to settings, keys, members, invitations, webhooks and channels is
//! recorded with the change, the actor and the address, and without secrets.

use rapport_app::channel::{AddCode, ArchiveCode, CreateChannel, DeleteChannel, DeleteCode, RenameChannel};
use rapport_app::credential::{CreateToken, Key, RevokeToken, RotateKey};
use rapport_app::invitation::{Invite, Offer, ResendInvitation, RevokeInvitation};
use rapport_app::member::{AddMember, ChangeMember, RemoveMember};
use rapport_app::password_reset::{OpenReset, SendReset};
use rapport_app::settings::PatchSettings;
use rapport_app::webhook::{DeleteWebhook, DisableWebhook, EnableWebhook, RotateSecret};
use rapport_app::{Access, Command, Error, Origin};
use rapport_domain::channel::PromoCode;
use rapport_domain::history::Actor;
use rapport_domain::member::{Email, Role};
use rapport_domain::request_id::RequestId;
use rapport_domain::webhook::Held;
use rapport_store::audit::AuditEntry;
use rapport_testkit::{TestApp, block_on, create_webhook, patch_webhook};
use serde_json::{Value, json};

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
        // As an IPv6 listener sees an IPv4 caller.
        let address = format!("::ffff:{FROM}").parse().unwrap();
        let origin = Origin { address, request: RequestId::parse(REQUEST.as_bytes()).unwrap() };
        block_on(self.app.app().write_from(access, Some(origin), command))
    }

    fn log(&self) -> Vec<AuditEntry> {
        let page = self.app.read(|snapshot| rapport_store::audit::list(snapshot, None, 1000));
        page.items.into_iter().rev().collect()
    }

    /// The entries logged since there were `known` of them, as action and detail.
    fn since(&self, known: usize) -> Vec<(String, Value)> {
        let entry = |entry: &AuditEntry| (entry.action.clone(), serde_json::from_str(&entry.detail).unwrap());
        self.log()[known..].iter().map(entry).collect()
    }
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
    let token = managing.run(CreateToken { name: "CRM".to_owned(), role: Role::Member });
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
    let (name, password_hash) = ("Bo".to_owned(), "the hash of a password".to_owned());
    let add = AddMember { email: email("bo@acme.test"), name, role: Role::Member, password_hash };
    let bo = managing.run(add).member.person;
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
            ["member.added", {"email": "bo@acme.test", "role": "member"}],
            ["member.changed", {"role": {"from": "member", "to": "admin"}}],
            ["member.changed", {"active": {"from": true, "to": false}}],
            ["member.changed", {"active": {"from": false, "to": true}}],
            ["password_reset.sent", {"email": "bo@acme.test", "by_hand": true}],
            ["member.removed", {"email": "bo@acme.test", "role": "admin"}],
        ]),
    );
    managing.secrets.extend(["the hash of a password".to_owned(), secret_of(&reset)]);
    invitations(managing);
}

fn secret_of(link: &str) -> String {
    link.rsplit('/').next().unwrap().to_owned()
}

fn invitations(managing: &mut Managing) {
    let known = managing.log().len();
    let revoked = managing.run(Invite { email: email("cy@acme.test"), role: Role::Member });
    let resent = managing.run(ResendInvitation(revoked.invitation.id));
    managing.run(RevokeInvitation(revoked.invitation.id));
    let accepted = managing.run(Invite { email: email("di@acme.test"), role: Role::Admin });
    let token = secret_of(accepted.link.as_ref().unwrap());
    let services = managing.app.app().services();
    let offer = block_on(Offer::look(managing.app.app(), &token)).unwrap();
    let access = offer.access();
    let accept = offer.answer(services, Some("Di".to_owned()), "the password of Di").unwrap();
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
    let rotated = managing.run(RotateSecret(id));
    managing.run(DisableWebhook(id));
    managing.run(DisableWebhook(id));
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
            ["webhook.secret_rotated", {"prefix": rotated.shown}],
            ["webhook.disabled", {"enabled": {"from": true, "to": false}}],
            ["webhook.enabled", {"enabled": {"from": false, "to": true}, "held": "drop"}],
            ["webhook.deleted", {"url": "https://example.com/b"}],
        ]),
    );
    managing.secrets.extend([made.secret, rotated.secret]);
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

#[test]
fn the_command_line_has_no_address() {
    TestApp::on_both(|app| {
        app.write_as(&Access::CommandLine(app.id()), RotateKey(Key::Ingest)).unwrap();
        let page = app.read(|snapshot| rapport_store::audit::list(snapshot, None, 1));
        assert_eq!((&page.items[0].actor, &page.items[0].address), (&Actor::CommandLine, &None));
    });
}
