//! Sending mail: a server that is down, one that refuses, a process that dies at the worst moment, two
//! processes.

use std::collections::HashSet;

use rapport_app::digest::send_now;
use rapport_app::mail::take_due;
use rapport_domain::digest::Audience;
use rapport_domain::mail::State;
use rapport_domain::member::Role;
use rapport_jobs::mailer::Letter;
use rapport_testkit::block_on;

use crate::harness::{Mailing, mailer};

fn write_one(mailing: &Mailing) {
    let app = &mailing.test;
    assert!(block_on(send_now(app.app(), app.token(), None, Audience::Everyone)).unwrap() > 0);
}

#[test]
fn what_is_written_is_sent_and_recorded() {
    Mailing::on_both(|mailing| {
        let node = mailing.node();
        write_one(mailing);
        let mail = mailing.received(1).remove(0);
        assert!(mail.encrypted && mail.authenticated);
        let recorded = mailing.wait_for_state(State::Sent, 1).remove(0);
        assert_eq!(mail.header("Message-ID"), format!("<{}@crm.acme.test>", recorded.id));
        assert_eq!((recorded.attempts, recorded.error), (1, None));
        node.stop();
    });
}

#[test]
fn a_server_that_is_down_at_the_first_try_gets_it_at_the_second() {
    Mailing::on_both(|mailing| {
        mailing.server.stop();
        let node = mailing.node();
        write_one(mailing);
        let waiting = mailing.wait_for_failure(1);
        assert_eq!(waiting.state, State::Waiting);
        assert_eq!(waiting.next_at, Some(mailing.test.clock().now().plus_seconds(60)));
        mailing.server.start_again();
        mailing.test.clock().advance_seconds(60);
        assert_eq!(mailing.received(1).len(), 1);
        assert_eq!(mailing.wait_for_state(State::Sent, 1)[0].attempts, 2);
        node.stop();
    });
}

#[test]
fn a_mailbox_that_does_not_exist_is_tried_once() {
    Mailing::on_both(|mailing| {
        mailing.server.refuse(Some("550 5.1.1 no such mailbox"));
        let node = mailing.node();
        write_one(mailing);
        let failed = mailing.wait_for_state(State::Failed, 1).remove(0);
        assert_eq!(failed.attempts, 1);
        assert!(failed.error.unwrap().contains("5.1.1 no such mailbox"));
        mailing.server.refuse(None);
        mailing.test.clock().advance_seconds(3_600);
        mailing.member("ana@acme.test", Role::Member);
        write_one(mailing);
        mailing.wait_for_state(State::Sent, 2);
        assert_eq!(mailing.mails()[0].attempts, 1, "others are sent; this one stays failed");
        node.stop();
    });
}

#[test]
fn a_process_killed_between_sending_and_recording_makes_one_duplicate_at_most() {
    Mailing::on_both(|mailing| {
        write_one(mailing);
        let app = &mailing.test;
        let taken = block_on(take_due(app.app(), app.id(), 10)).unwrap().remove(0);
        let id = taken.id.to_string();
        let letter = Letter {
            id: &id,
            recipient: taken.recipient.as_str(),
            subject: &taken.subject,
            plain: &taken.plain,
            html: &taken.html,
            date: taken.date,
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(mailer(&mailing.server).send(letter)).unwrap();
        // The process dies here. The next one leaves the mail alone until its lease ends.
        let node = mailing.node();
        mailing.member("ana@acme.test", Role::Member);
        write_one(mailing);
        mailing.wait_for_state(State::Sent, 2);
        assert_eq!(mailing.server.received().len(), 3, "the first and the two written later");
        app.clock().advance_seconds(300);
        mailing.wait_for_state(State::Sent, 3);
        app.clock().advance_days(1);
        write_one(mailing);
        mailing.wait_for_state(State::Sent, 5);
        let received = mailing.server.received();
        let twins = received.iter().filter(|mail| mail.header("Message-ID").contains(&id)).count();
        assert_eq!((twins, received.len()), (2, 6), "sent twice with the same Message-ID");
        node.stop();
    });
}

#[test]
fn two_nodes_send_each_mail_once() {
    Mailing::on_both(|mailing| {
        for number in 0..15 {
            mailing.member(&format!("m{number}@acme.test"), Role::Member);
        }
        let nodes = [mailing.node(), mailing.node()];
        write_one(mailing);
        write_one(mailing);
        mailing.wait_for_state(State::Sent, 32);
        nodes.into_iter().for_each(crate::harness::Node::stop);
        let received = mailing.server.received();
        let ids: HashSet<&str> = received.iter().map(|mail| mail.header("Message-ID")).collect();
        assert_eq!((received.len(), ids.len()), (32, 32));
    });
}
