//! Mails in storage: claimed once, retried on schedule, ended when they are outdated.

use rapport_app::digest::send_now;
use rapport_app::mail::{Outgoing, record, take_due};
use rapport_app::member::ChangeMember;
use rapport_app::retention::{Round, step};
use rapport_app::{Outside, Parts};
use rapport_domain::digest::Audience;
use rapport_domain::id::PersonId;
use rapport_domain::mail::{Failure, State};
use rapport_domain::member::Role;
use rapport_store::mail::Mail;
use rapport_testkit::{Engine, TestApp, TestCompany, all, block_on};

pub const BASE_URL: &str = "https://crm.acme.test";

fn with_mail(parts: &mut Parts) {
    parts.outside = Outside { base_url: BASE_URL.to_owned(), mail_configured: true };
}

/// Checks a rule on both engines, with processes that can send mail.
pub fn on_both_with_mail(rule: impl Fn(&TestApp)) {
    for engine in Engine::BOTH {
        eprintln!("on {engine}");
        rule(&TestApp::with(engine, with_mail));
    }
}

/// The company's mails, oldest first.
pub fn mails(company: &TestCompany) -> Vec<Mail> {
    let page = company.read(|snapshot| rapport_store::mail::list(snapshot, None, 1000));
    page.items.into_iter().rev().collect()
}

pub fn take(company: &TestCompany) -> Vec<Outgoing> {
    block_on(take_due(company.app(), company.id(), 100)).expect("taking mails")
}

pub fn member(company: &TestCompany, email: &str, role: Role) -> PersonId {
    company.employ(email, "A Person", role).person
}

fn send_one(company: &TestCompany) {
    let sent = send_now(company.app(), company.token(), None, Audience::Everyone);
    assert!(block_on(sent).unwrap() > 0);
}

fn fail(company: &TestCompany, mail: &Outgoing, permanent: bool) {
    let failure = Failure { permanent, error: "the server's words".to_owned() };
    block_on(record(company.app(), company.id(), mail, Err(failure))).unwrap();
}

fn succeed(company: &TestCompany, mail: &Outgoing) {
    block_on(record(company.app(), company.id(), mail, Ok(()))).unwrap();
}

#[test]
fn a_mail_is_taken_once_and_recorded_as_sent() {
    on_both_with_mail(|app| {
        send_one(app);
        let taken = take(app);
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].recipient.as_str(), "owner@acme.test");
        assert!(take(app).is_empty(), "another node has claimed it");
        app.clock().advance_seconds(7);
        succeed(app, &taken[0]);
        let kept = mails(app).remove(0);
        assert_eq!((kept.state, kept.attempts, kept.error), (State::Sent, 1, None));
        assert_eq!(kept.finished_at, Some(app.clock().now()));
        app.clock().advance_days(1);
        assert!(take(app).is_empty());
    });
}

#[test]
fn nodes_that_look_at_once_share_the_mails() {
    on_both_with_mail(|app| {
        for number in 0..20 {
            member(app, &format!("m{number}@acme.test"), Role::Member);
        }
        send_one(app);
        let other = app.another_node();
        let nodes = [app.app(), &other, app.app(), &other];
        let taken = block_on(all(nodes.map(|node| take_due(node, app.id(), 100))));
        let mut ids: Vec<_> = taken.into_iter().flatten().flatten().map(|mail| mail.id).collect();
        assert_eq!(ids.len(), 21);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 21, "none was taken twice");
    });
}

#[test]
fn a_temporary_failure_is_tried_again_on_the_schedule_and_then_given_up() {
    on_both_with_mail(|app| {
        send_one(app);
        for (attempt, pause) in (1..).zip([60, 300, 1_800, 7_200, 21_600, 43_200]) {
            let taken = take(app);
            assert_eq!(taken.len(), 1, "attempt {attempt}");
            fail(app, &taken[0], false);
            let kept = mails(app).remove(0);
            assert_eq!((kept.state, kept.attempts), (State::Waiting, attempt));
            assert_eq!(kept.next_at, Some(app.clock().now().plus_seconds(pause)));
            assert_eq!(kept.error.as_deref(), Some("the server's words"));
            app.clock().advance_seconds(pause - 1);
            assert!(take(app).is_empty(), "it isn't retried early");
            app.clock().advance_seconds(1);
        }
        fail(app, &take(app)[0], false);
        let kept = mails(app).remove(0);
        assert_eq!((kept.state, kept.attempts, kept.next_at), (State::Failed, 7, None));
        app.clock().advance_days(1);
        assert!(take(app).is_empty());
    });
}

#[test]
fn a_permanent_failure_is_recorded_and_not_tried_again() {
    on_both_with_mail(|app| {
        send_one(app);
        fail(app, &take(app)[0], true);
        let kept = mails(app).remove(0);
        assert_eq!((kept.state, kept.attempts), (State::Failed, 1));
        assert_eq!(kept.error.as_deref(), Some("the server's words"));
        app.clock().advance_days(1);
        assert!(take(app).is_empty());
    });
}

#[test]
fn a_node_that_dies_with_a_mail_in_hand_leaves_it_to_another_when_its_lease_ends() {
    on_both_with_mail(|app| {
        send_one(app);
        let lost = take(app).remove(0);
        app.clock().advance_seconds(299);
        assert!(take(app).is_empty());
        app.clock().advance_seconds(1);
        let again = take(app).remove(0);
        assert_eq!(again.id, lost.id, "the same mail, by its Message-ID too");
        // The first node was only slow: its result comes too late, and the second node's counts.
        fail(app, &lost, true);
        assert_eq!(mails(app)[0].state, State::Waiting);
        succeed(app, &again);
        assert_eq!((mails(app)[0].state, mails(app)[0].attempts), (State::Sent, 2));
        succeed(app, &lost);
        assert_eq!(mails(app)[0].attempts, 2);
    });
}

#[test]
fn who_is_deactivated_or_removed_meanwhile_gets_no_mail() {
    on_both_with_mail(|app| {
        let away = member(app, "away@acme.test", Role::Member);
        let gone = member(app, "gone@acme.test", Role::Member);
        send_one(app);
        app.write(ChangeMember { person: away, role: None, active: Some(false) }).unwrap();
        app.write(rapport_app::member::RemoveMember(gone)).unwrap();
        let taken = take(app);
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].recipient.as_str(), "owner@acme.test");
        let ended: Vec<_> = mails(app).into_iter().filter(|mail| mail.state == State::Failed).collect();
        assert_eq!(ended.len(), 2);
        assert!(ended.iter().all(|mail| mail.error.as_deref() == Some("recipient_inactive")));
        send_one(app);
        assert_eq!(mails(app).len(), 4, "the next one isn't written for them at all");
    });
}

#[test]
fn what_is_not_worth_sending_any_more_is_ended() {
    on_both_with_mail(|app| {
        send_one(app);
        app.clock().advance_days(3);
        assert!(take(app).is_empty());
        let kept = mails(app).remove(0);
        assert_eq!((kept.state, kept.attempts, kept.error.as_deref()), (State::Failed, 0, Some("expired")));
    });
}

#[test]
fn without_mail_configured_nothing_is_written_that_would_be_sent_later() {
    TestApp::on_both(|app| {
        let sent = block_on(send_now(app.app(), app.token(), None, Audience::Everyone));
        assert_eq!(crate::refusal(sent), "conflict mail_not_configured");
        assert_eq!((app.rows("mail"), app.rows("mail_content")), (0, 0));
    });
}

#[test]
fn mails_go_after_90_days_with_what_they_said() {
    on_both_with_mail(|app| {
        send_one(app);
        succeed(app, &take(app)[0]);
        app.clock().advance_days(89);
        prune(app);
        assert_eq!((app.rows("mail"), app.rows("mail_content")), (1, 1));
        app.clock().advance_days(2);
        prune(app);
        prune(app);
        assert_eq!((app.rows("mail"), app.rows("mail_content")), (0, 0));
    });
}

fn prune(company: &TestCompany) {
    let mut round = Round::default();
    while block_on(step(company.app(), company.id(), &mut round)).expect("a step") {}
}
