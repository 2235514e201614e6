//! A store where any command can fail before its commit, or commit and lose the answer. Whatever fails, every
//! delivery and manual attempt continues once the store works, without a restart.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rapport_app::Error;
use rapport_domain::delivery::State;
use rapport_domain::webhook::Held;
use rapport_store::{Fault, Faults};
use rapport_testkit::{Behaviour, Engine, Gate, Receiver};

use crate::harness::{Hook, Options, Sending, eventually, payload, wait_for_requests};

/// The sender's own commands, and one from a caller that causes deliveries.
const COMMANDS: [&str; 6] =
    ["::RecordAttempt", "::ClaimDue", "::ClaimManual", "::GiveBack", "::Upsert", "::Redeliver"];

/// A switch for faults: while it is on, some jobs fail.
#[derive(Clone, Default)]
pub struct Trouble(Arc<AtomicBool>);

impl Trouble {
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    /// Makes every `nth` job whose name ends this way fail.
    pub fn faults(&self, command: &'static str, fault: Fault, nth: u64) -> Faults {
        let (on, seen) = (Arc::clone(&self.0), AtomicU64::new(0));
        Faults::new(move |name| {
            let hit = on.load(Ordering::SeqCst)
                && name.ends_with(command)
                && seen.fetch_add(1, Ordering::SeqCst).is_multiple_of(nth);
            hit.then_some(fault)
        })
    }
}

pub fn options(faults: Faults) -> Options {
    Options { faults: Some(faults), ..Options::default() }
}

/// Waits until nothing is open and every event has arrived.
#[track_caller]
fn all_succeed(sending: &Sending, hook: &Hook, receiver: &Receiver) {
    eventually("every delivery to succeed", || {
        sending.deliveries(hook).iter().all(|it| it.state == State::Succeeded).then_some(())
    });
    let arrived: HashSet<String> =
        receiver.requests().iter().map(|request| payload(request)["id"].to_string()).collect();
    let events: HashSet<_> = sending.deliveries(hook).iter().map(|it| it.event).collect();
    assert_eq!(arrived.len(), events.len(), "every event arrived");
}

/// Whether the change wasn't stored, or the caller can't know if it was.
fn refused<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::OutcomeUnknown | Error::Unavailable(_)))
}

#[test]
fn whatever_command_fails_every_delivery_moves_again() {
    for engine in Engine::BOTH {
        for command in COMMANDS {
            for fault in [Fault::BeforeCommit, Fault::AfterCommit] {
                eprintln!("on {engine}: {command} fails, {fault:?}");
                let trouble = Trouble::default();
                let mut sending = Sending::with(engine, options(trouble.faults(command, fault, 2)));
                let receiver = Receiver::start();
                let hook = sending.webhook(&receiver.url("/hook"));
                trouble.set(true);
                let mut refusals = 0;
                for _ in 0..10 {
                    refusals += usize::from(refused(&sending.try_create_account()));
                }
                if command == "::Upsert" {
                    assert!(refusals > 0, "callers get an error");
                }
                let known = sending.deliveries(&hook);
                for delivery in known.iter().take(4) {
                    let _ = sending.redeliver(delivery.id);
                }
                trouble.set(false);
                all_succeed(&sending, &hook, &receiver);
                eventually("every manual attempt to be made", || {
                    (sending.test().rows("manual_attempt") == 0).then_some(())
                });
                assert_eq!(sending.owned(), 0, "nobody owns anything finished");
                sending.stop();
            }
        }
    }
}

#[test]
fn an_outcome_whose_answer_was_lost_is_recorded_once() {
    for engine in Engine::BOTH {
        let trouble = Trouble::default();
        let sending =
            Sending::with(engine, options(trouble.faults("::RecordAttempt", Fault::AfterCommit, 1)));
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Status(500));
        let hook = sending.webhook(&receiver.url("/hook"));
        trouble.set(true);
        let id = sending.send_event(&hook);
        sending.only_attempt(id);
        trouble.set(false);
        // The second try to record it finds the first.
        sending.quiet();
        assert_eq!((sending.attempts(id).len(), sending.streak(&hook)), (1, 1), "on {engine}");
        receiver.answer(Behaviour::Status(200));
        sending.move_to_due(id);
        sending.wait_for_success(id);
        let numbers: Vec<String> = receiver
            .requests()
            .iter()
            .map(|request| request.header("X-Service-Attempt").to_owned())
            .collect();
        assert_eq!(numbers, ["1", "2"], "on {engine}");
    }
}

#[test]
fn what_could_not_be_given_back_when_a_webhook_was_disabled_is_sent_when_it_is_enabled() {
    for engine in Engine::BOTH {
        for fault in [Fault::BeforeCommit, Fault::AfterCommit] {
            let trouble = Trouble::default();
            let sending = Sending::with(engine, options(trouble.faults("::GiveBack", fault, 1)));
            let receiver = Receiver::start();
            let gate = Gate::shut();
            receiver.script(vec![Behaviour::Until(gate.clone(), Box::new(Behaviour::Status(500)))]);
            let hook = sending.webhook(&receiver.url("/hook"));
            (0..10).for_each(|_| drop(sending.create_account()));
            wait_for_requests(&receiver, 1);
            trouble.set(true);
            sending.disable(&hook);
            gate.open();
            // The first one fails; the nine waiting in memory can't be given back.
            sending.wait_for_streak(&hook, 1);
            trouble.set(false);
            eventually("all ten to wait in the database", || (sending.waiting(&hook) == 10).then_some(()));
            sending.enable(&hook, Held::Send).expect("enabled");
            sending.clock().advance_seconds(10);
            all_succeed(&sending, &hook, &receiver);
        }
    }
}

#[test]
fn random_faults_lose_nothing_and_stick_nowhere() {
    for engine in Engine::BOTH {
        let trouble = Trouble::default();
        let (on, state) = (trouble.clone(), AtomicU64::new(7));
        let faults = Faults::new(move |_| {
            // A simple generator: the machine decides the order of jobs, so no seed would repeat a run.
            let next = |it: u64| {
                Some(it.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
            };
            let drawn = state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).unwrap_or(0) >> 33;
            match drawn % 10 {
                _ if !on.0.load(Ordering::SeqCst) => None,
                0..2 => Some(Fault::BeforeCommit),
                2..4 => Some(Fault::AfterCommit),
                _ => None,
            }
        });
        let sending = Sending::with(engine, options(faults));
        let receiver = Receiver::start();
        receiver.answer(Behaviour::Delay(Duration::from_millis(5), Box::new(Behaviour::Status(200))));
        let hook = sending.webhook(&receiver.url("/hook"));
        trouble.set(true);
        for number in 0..60 {
            let _ = sending.try_create_account();
            if number % 7 == 0
                && let Some(delivery) = sending.deliveries(&hook).last()
            {
                let _ = sending.redeliver(delivery.id);
            }
        }
        trouble.set(false);
        all_succeed(&sending, &hook, &receiver);
        eventually("every manual attempt to be made", || {
            (sending.test().rows("manual_attempt") == 0).then_some(())
        });
        assert_eq!(sending.owned(), 0, "on {engine}");
    }
}
