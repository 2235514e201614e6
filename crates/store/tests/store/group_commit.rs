//! Jobs commit together and fail alone.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use rapport_domain::account::Account;
use rapport_domain::id::{AccountId, CompanyId, CredentialId};
use rapport_store::{Error, Job, Lane, Tx, Verdict, account, credential};

use crate::support::{
    LONG, World, account_id, answer_of, new_account, on_both_engines, time, with_one_writer,
};

fn insert_one(tx: &mut Tx, number: u64) -> Result<(), Error> {
    let new = new_account(number, "Nordlys");
    assert!(account::insert(tx, &[&new])?);
    Ok(())
}

fn stored(world: &World, company: CompanyId) -> Vec<AccountId> {
    let ids: Vec<AccountId> = (0..1000).map(account_id).collect();
    let mut found = world.read(company, move |snapshot| account::existing(snapshot, &ids));
    found.sort_unstable();
    found
}

#[test]
fn jobs_submitted_at_once_all_commit() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let answers: Vec<_> = (0..200)
            .map(|number| {
                world.submit(Lane::Outcome, company, move |tx| {
                    insert_one(tx, number)?;
                    Ok(Verdict::Commit)
                })
            })
            .collect();
        for answer in &answers {
            answer_of(answer).expect("committed");
        }
        assert_eq!(stored(world, company), (0..200).map(account_id).collect::<Vec<_>>());
    });
}

#[test]
fn jobs_that_roll_back_fail_or_panic_leave_nothing_and_harm_no_others() {
    with_one_writer(|world| {
        let company = world.company("acme");
        let held = world.hold_writer(company);
        let mut answers = Vec::new();
        for number in 0..40 {
            answers.push(world.submit(Lane::Outcome, company, move |tx| {
                insert_one(tx, number)?;
                match number {
                    10 => return Ok(Verdict::Rollback),
                    20 => return Err(Error::Fault("given up".to_owned())),
                    25 => break_a_key(tx)?,
                    30 => panic!("a job that panics"),
                    _ => {}
                }
                Ok(Verdict::Commit)
            }));
        }
        drop(held);
        for (number, answer) in answers.iter().enumerate() {
            let answer = answer_of(answer);
            match number {
                20 => assert!(matches!(&answer, Err(Error::Fault(text)) if text == "given up"), "{answer:?}"),
                25 => assert!(answer.is_err(), "a key taken twice"),
                30 => {
                    let told =
                        matches!(&answer, Err(Error::Fault(text)) if text.contains("a job that panics"));
                    assert!(told, "{answer:?}");
                }
                _ => assert!(answer.is_ok(), "{number}: {answer:?}"),
            }
        }
        let kept = (0..40).filter(|number| ![10, 20, 25, 30].contains(number)).map(account_id);
        assert_eq!(stored(world, company), kept.collect::<Vec<_>>());
        assert_eq!(world.rows_of("credential"), 0);
        assert_eq!(world.rows_of("account_word"), 36, "the words were rolled back with their accounts");
    });
}

/// Violates a unique index.
fn break_a_key(tx: &mut Tx) -> Result<(), Error> {
    use rapport_domain::credential::{Credential, Kind, issue};
    use rapport_domain::member::Role;
    let issued = issue(Kind::ApiToken, tx.company(), [1; 20]);
    let credential = Credential {
        id: CredentialId::from_bytes([1; 16]),
        kind: Kind::ApiToken,
        name: String::new(),
        role: Role::Admin,
        shown: issued.shown,
        created_at: time(0),
        last_used_at: None,
        person: None,
        expires_at: None,
        rate_limit: None,
    };
    credential::insert(tx, &issued.hash, &credential)?;
    credential::insert(tx, &issued.hash, &credential)
}

#[test]
fn actions_run_after_a_commit_only_and_before_the_answer() {
    on_both_engines(|world| {
        let company = world.company("acme");
        for (verdict, expected) in
            [(Ok(Verdict::Commit), 1), (Ok(Verdict::Rollback), 0), (Err(Error::Fault(String::new())), 0)]
        {
            let acted = Arc::new(Mutex::new(0));
            let shared = Arc::clone(&acted);
            let asked = verdict.clone();
            let answer = world.submit(Lane::Outcome, company, move |tx| {
                let acted = Arc::clone(&shared);
                tx.after_commit(move || *acted.lock() += 1);
                verdict.clone()
            });
            let _ = answer_of(&answer);
            assert_eq!(*acted.lock(), expected, "{asked:?}");
        }
    });
}

#[test]
fn an_action_sees_what_was_committed_and_its_panic_harms_nobody() {
    with_one_writer(|world| {
        let company = world.company("acme");
        let (seen, was_seen) = channel();
        world.submit(Lane::Outcome, company, move |tx| {
            insert_one(tx, 1)?;
            let seen = seen.clone();
            tx.after_commit(move || {
                let _ = seen.send(());
                panic!("an action that panics");
            });
            Ok(Verdict::Commit)
        });
        was_seen.recv_timeout(LONG).expect("the action");
        assert_eq!(stored(world, company), [account_id(1)]);
        world.write(company, |tx| insert_one(tx, 2)).expect("a writer that still works");
    });
}

/// A job that runs together with others of its family.
struct Together {
    company: CompanyId,
    number: u64,
    fate: Fate,
    batches: Arc<Mutex<Vec<usize>>>,
    answer: Sender<Result<(), Error>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Commit,
    Fail,
    Panic,
}

impl Job for Together {
    fn company(&self) -> CompanyId {
        self.company
    }

    fn family(&self) -> Option<TypeId> {
        Some(TypeId::of::<Self>())
    }

    fn most_together(&self) -> usize {
        8
    }

    fn run(&mut self, rest: &mut [Box<dyn Job>], tx: &mut Tx) -> Result<Verdict, Error> {
        self.batches.lock().push(1 + rest.len());
        let mut members = vec![(self.number, self.fate)];
        for job in rest {
            let job = job.as_any().downcast_ref::<Self>().expect("one of the family");
            assert_eq!(job.company, self.company, "one transaction, one company");
            members.push((job.number, job.fate));
        }
        let accounts: Vec<Account> =
            members.iter().map(|(number, _)| new_account(*number, "Nordlys")).collect();
        assert!(account::insert(tx, &accounts.iter().collect::<Vec<_>>())?);
        if members.iter().any(|(_, fate)| *fate == Fate::Fail) {
            return Err(Error::Fault("one of them fails".to_owned()));
        }
        assert!(members.iter().all(|(_, fate)| *fate != Fate::Panic), "one of them panics");
        Ok(Verdict::Commit)
    }

    fn settle(self: Box<Self>, outcome: Result<(), Error>) {
        let _ = self.answer.send(outcome);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

type Answer = Receiver<Result<(), Error>>;

/// Submits jobs of one family while the only writer is blocked, then releases it.
fn run_together(world: &World, fates: &[(CompanyId, Fate)]) -> (Vec<Answer>, Arc<Mutex<Vec<usize>>>) {
    let batches = Arc::new(Mutex::new(Vec::new()));
    let held = world.hold_writer(fates[0].0);
    let mut answers = Vec::new();
    for (number, (company, fate)) in (0..).zip(fates) {
        let (answer, answered) = channel();
        let batches = Arc::clone(&batches);
        let job = Together { company: *company, number, fate: *fate, batches, answer };
        world.store.submit(Lane::Outcome, Box::new(job));
        answers.push(answered);
    }
    drop(held);
    (answers, batches)
}

#[test]
fn a_family_runs_together_within_its_company_and_bound() {
    with_one_writer(|world| {
        let (one, other) = (world.company("one"), world.company("other"));
        let fates: Vec<_> = (0..20).map(|n| (if n % 2 == 0 { one } else { other }, Fate::Commit)).collect();
        let (answers, batches) = run_together(world, &fates);
        for answer in &answers {
            answer_of(answer).expect("committed");
        }
        let mut sizes = batches.lock().clone();
        sizes.sort_unstable();
        assert_eq!(sizes, [2, 2, 8, 8], "ten jobs per company, at most eight together");
        assert_eq!(stored(world, one).len(), 10);
        assert_eq!(stored(world, other).len(), 10);
    });
}

#[test]
fn a_family_that_fails_together_runs_one_by_one() {
    for fate in [Fate::Fail, Fate::Panic] {
        with_one_writer(|world| {
            let company = world.company("acme");
            let mut fates = vec![(company, Fate::Commit); 5];
            fates[2].1 = fate;
            let (answers, batches) = run_together(world, &fates);
            let failed: Vec<bool> = answers.iter().map(|answer| answer_of(answer).is_err()).collect();
            assert_eq!(failed, [false, false, true, false, false]);
            assert_eq!(*batches.lock(), [5, 1, 1, 1, 1, 1]);
            assert_eq!(stored(world, company), [0, 1, 3, 4].map(account_id));
        });
    }
}
