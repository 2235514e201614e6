//! What people do with the mails they get: join, choose a new password, fix a webhook.

use rapport_app::delivery::RecordAttempt;
use rapport_app::invitation::{Invite, Offer};
use rapport_app::password_reset::{OpenReset, RequestReset};
use rapport_app::webhook::TestWebhook;
use rapport_app::{Access, password};
use rapport_domain::delivery::{Attempt, Failure, Outcome, Reason, Timings};
use rapport_domain::invitation::Acceptance;
use rapport_domain::mail::{Kind, State};
use rapport_domain::member::{Email, Role};
use rapport_domain::webhook::Switch;
use rapport_testkit::{block_on, create_webhook};
use serde_json::json;

use crate::harness::{BASE_URL, Mailing};

/// The secret of the only link to this page.
#[track_caller]
fn secret_in(text: &str, page: &str) -> String {
    let link = format!("{BASE_URL}{page}");
    let start = text.find(&link).unwrap_or_else(|| panic!("no {link} in {text}")) + link.len();
    text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

#[test]
fn an_invited_person_joins_by_the_link_in_the_mail() {
    Mailing::on_both(|mailing| {
        let (app, node) = (&mailing.test, mailing.node());
        app.write(Invite { email: Email::parse("ana@acme.test").unwrap(), name: None, role: Role::Admin })
            .unwrap();
        let mail = mailing.received(1).remove(0);
        assert_eq!(mail.header("Subject"), "Join acme on Rapport");
        let token = secret_in(&mail.plain, "/invitation/");
        assert_eq!(secret_in(&mail.html, "/invitation/"), token);
        mailing.wait_for_state(State::Sent, 1);
        assert_eq!(app.number("SELECT count(*) FROM mail_content WHERE secret IS NOT NULL"), 0);
        let offer = block_on(Offer::look(app.app(), &token)).unwrap();
        let access = offer.access();
        let password = "a good password".to_owned();
        let acceptance = Acceptance { token, name: None, password, login: None };
        let accept = offer.answer(app.app().services(), acceptance).unwrap();
        let joined = block_on(app.app().write(&access, accept)).unwrap();
        assert_eq!((joined.email.as_str(), joined.role), ("ana@acme.test", Role::Admin));
        node.stop();
    });
}

#[test]
fn who_forgot_their_password_chooses_another_by_the_link_in_the_mail() {
    Mailing::on_both(|mailing| {
        let (app, node) = (&mailing.test, mailing.node());
        for email in ["nobody@acme.test", "owner@acme.test"] {
            let command = RequestReset(Email::parse(email).unwrap());
            block_on(app.app().write(&Access::NO_COMPANY, command)).unwrap();
        }
        let mail = mailing.received(1).remove(0);
        assert_eq!(mail.to, ["owner@acme.test"]);
        let token = secret_in(&mail.plain, "/password-reset/");
        mailing.wait_for_state(State::Sent, 1);
        let open = block_on(OpenReset::look(app.app(), &token)).unwrap();
        let (access, hash) = (open.access(), password::hash(app.app().services(), "a new password").unwrap());
        block_on(app.app().write(&access, open.confirm(hash))).unwrap();
        let owner = app.read(rapport_store::member::list).remove(0).person;
        let login = app.read(move |snapshot| rapport_store::member::login(snapshot, owner)).unwrap();
        assert!(password::verify("a new password", &login.password_hash));
        let notice = mailing.received(2).remove(1);
        assert_eq!(
            (&notice.to[0][..], notice.header("Subject")),
            ("owner@acme.test", "Your password was reset on Rapport")
        );
        assert_eq!(mailing.server.received().len(), 2, "nobody got the other one");
        node.stop();
    });
}

#[test]
fn owners_and_admins_are_told_once_when_a_webhook_is_switched_off() {
    Mailing::on_both(|mailing| {
        let (app, node) = (&mailing.test, mailing.node());
        mailing.member("ana@acme.test", Role::Admin);
        mailing.member("bo@acme.test", Role::Member);
        let body = json!({
            "url": "https://hooks.example.com/secret-path?key=secret", "events": ["account.created"],
            "description": "CRM sync",
        });
        let hook = app.write(create_webhook(app.app(), &body)).unwrap().webhook.id;
        for failure in 1..=22 {
            let delivery = app.write(TestWebhook(hook)).unwrap().id;
            let attempt = Attempt {
                started_at: app.clock().now(),
                reason: Reason::Automatic,
                outcome: Outcome::Failed(Failure::Connect),
                error: None,
                timings: Timings::default(),
                address: None,
                excerpt: Vec::new(),
                excerpt_cut: false,
            };
            let record = RecordAttempt::new(0, hook, delivery, attempt, None);
            app.write_as(&Access::System(app.id()), record).unwrap();
            let switch =
                app.read(move |snapshot| rapport_store::webhook::get(snapshot, hook)).unwrap().switch;
            assert_eq!(matches!(switch, Switch::AutoDisabled { .. }), failure >= 20);
            assert_eq!(mailing.mails().len(), if failure >= 20 { 2 } else { 0 }, "failure {failure}");
        }
        let sent = mailing.wait_for_state(State::Sent, 2);
        assert!(sent.iter().all(|mail| mail.kind == Kind::WebhookDisabled));
        let mut received = mailing.received(2);
        received.sort_by(|one, other| one.to.cmp(&other.to));
        assert_eq!([&received[0].to[0], &received[1].to[0]], ["ana@acme.test", "owner@acme.test"]);
        let mail = &received[0];
        assert_eq!(mail.header("Subject"), "acme: a webhook was disabled");
        for text in [&mail.plain, &mail.html] {
            assert!(text.contains("CRM sync (hooks.example.com)") && text.contains("20"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
        node.stop();
    });
}
