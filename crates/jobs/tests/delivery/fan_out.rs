//! Events that more webhooks select than their transaction has time for.

use std::collections::HashMap;

use rapport_app::fan_out::{FIRST, PART};
use rapport_store::Fault;
use rapport_testkit::{Engine, Receiver};

use crate::harness::{Sending, eventually};
use crate::lost::{Trouble, options};

const HOOKS: usize = FIRST + PART + 10;

/// Waits until each path was requested once per event.
#[track_caller]
fn each_arrives(sending: &Sending, receiver: &Receiver, events: usize) {
    eventually("every webhook to get every event", || {
        (receiver.requests().len() >= HOOKS * events).then_some(())
    });
    sending.quiet();
    let mut paths: HashMap<String, usize> = HashMap::new();
    receiver.requests().iter().for_each(|request| *paths.entry(request.path.clone()).or_default() += 1);
    assert_eq!(paths.len(), HOOKS);
    assert!(paths.values().all(|count| *count == events), "{paths:?}");
    assert_eq!(sending.test().rows("fan_out"), 0);
}

#[test]
fn every_webhook_hears_of_it_once() {
    Sending::on_both(|sending| {
        let receiver = Receiver::start();
        (0..HOOKS).for_each(|number| drop(sending.webhook(&receiver.url(&format!("/{number}")))));
        sending.create_account();
        sending.create_account();
        each_arrives(sending, &receiver, 2);
    });
}

#[test]
fn a_part_whose_commit_failed_or_whose_answer_was_lost_arrives() {
    for engine in Engine::BOTH {
        for fault in [Fault::BeforeCommit, Fault::AfterCommit] {
            let trouble = Trouble::default();
            let sending = Sending::with(engine, options(trouble.faults("::Continue", fault, 2)));
            let receiver = Receiver::start();
            (0..HOOKS).for_each(|number| drop(sending.webhook(&receiver.url(&format!("/{number}")))));
            trouble.set(true);
            sending.create_account();
            each_arrives(&sending, &receiver, 1);
        }
    }
}
