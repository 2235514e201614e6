//! The digest as members get it, through a real mail server.

use rapport_app::member::ChangeMember;
use rapport_domain::mail::State;
use rapport_domain::member::Role;
use serde_json::json;

use crate::harness::{BASE_URL, Mailing};

#[test]
fn it_reaches_every_active_member_correct_in_text_and_html() {
    Mailing::on_both(|mailing| {
        let app = &mailing.test;
        mailing.member("ana@acme.test", Role::Member);
        let away = mailing.member("away@acme.test", Role::Admin);
        app.write(ChangeMember { person: away, role: None, active: Some(false) }).unwrap();
        let odd = "<i>Ærø & \"Søn\"</i> שלום 🎉";
        let account = app.upsert(json!({"imported_id": "a", "name": odd, "status": "customer"})).account;
        app.clock().advance_days(2);
        app.upsert(json!({"imported_id": "b", "name": "Second Ltd", "status": "in_trial"}));
        mailing.at("2026-02-23T07:59:00Z");
        let node = mailing.node();
        mailing.at("2026-02-23T08:00:00Z");
        let mut received = mailing.received(2);
        mailing.wait_for_state(State::Sent, 2);
        received.sort_by(|one, other| one.to.cmp(&other.to));
        assert_eq!([&received[0].to[0], &received[1].to[0]], ["ana@acme.test", "owner@acme.test"]);
        let mail = &received[0];
        assert!(mail.encrypted && mail.authenticated);
        assert_eq!(mail.header("Subject"), "acme: 2 clients are overdue for contact");
        assert_eq!(mail.content_type, "multipart/alternative");
        let link = format!("{BASE_URL}/accounts/{}", account.id);
        let plain = mail.plain.replace("\r\n", "\n");
        assert!(plain.contains(&format!("- {odd}: 6 days overdue\n  {link}\n")), "{plain}");
        assert!(plain.contains("- Second Ltd: 4 days overdue"), "{plain}");
        assert!(plain.find(odd) < plain.find("Second Ltd"), "{plain}");
        assert!(!mail.html.contains("<i>"), "{}", mail.html);
        assert!(mail.html.contains(&format!("<a href=\"{link}\"")), "{}", mail.html);
        assert!(mail.html.contains("שלום 🎉") && mail.html.contains("Second Ltd"), "{}", mail.html);
        // This week's digest is out; no change until Sunday makes another.
        node.stop();
        let nodes = [mailing.node(), mailing.node()];
        app.set(json!({"digest_weekday": "wednesday"}));
        mailing.at("2026-02-25T08:00:00Z");
        mailing.at("2026-03-04T08:00:00Z");
        mailing.wait_for_state(State::Sent, 4);
        nodes.into_iter().for_each(crate::harness::Node::stop);
        assert_eq!(mailing.server.received().len(), 4, "two members, two weeks");
        assert_eq!(app.rows("digest"), 2);
    });
}
