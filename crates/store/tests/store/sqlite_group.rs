//! SQLite's writer limits a transaction by time, and every lane gets its share of each.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rapport_domain::id::CompanyId;
use rapport_store::{Database, Error, Job, Lane, Store, Tx, Verdict};

use crate::support::{World, answer_of, patient};

/// Two of these take longer than a transaction should.
const SLOW: Duration = Duration::from_millis(60);

fn with_sqlite(test: impl Fn(&World)) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::Sqlite(directory.path().join("rapport.db"));
    let store = Store::open(&patient(database.clone())).expect("a database that opens");
    test(&World { store, database });
}

type Order = Arc<Mutex<Vec<&'static str>>>;

/// Slow work that records its name when it begins.
fn submit_slow(
    world: &World,
    lane: Lane,
    company: CompanyId,
    (order, name): (&Order, &'static str),
) -> Receiver<Result<(), Error>> {
    let order = Arc::clone(order);
    world.submit(lane, company, move |_| {
        order.lock().push(name);
        thread::sleep(SLOW);
        Ok(Verdict::Commit)
    })
}

#[test]
fn a_result_does_not_wait_for_the_whole_group() {
    with_sqlite(|world| {
        let company = world.company("acme");
        let order = Order::default();
        let held = world.hold_writer(company);
        let first = submit_slow(world, Lane::Interactive, company, (&order, "first"));
        for _ in 0..6 {
            submit_slow(world, Lane::Interactive, company, (&order, "between"));
        }
        let (was_answered, answered) = channel();
        let last = world.submit(Lane::Interactive, company, move |_| {
            let _ = was_answered.send(first.try_recv().is_ok());
            Ok(Verdict::Commit)
        });
        drop(held);
        answer_of(&last).expect("committed");
        assert!(answered.recv().expect("it ran"), "the first was answered before the last ran");
        assert_eq!(order.lock().len(), 7);
    });
}

#[test]
fn no_lane_starves_another_and_each_keeps_its_order() {
    with_sqlite(|world| {
        let company = world.company("acme");
        let order = Order::default();
        let held = world.hold_writer(company);
        let outcomes = ["o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8"];
        let mut answers: Vec<_> =
            outcomes.map(|name| submit_slow(world, Lane::Outcome, company, (&order, name))).into();
        answers.push(submit_slow(world, Lane::Interactive, company, (&order, "i1")));
        answers.push(submit_slow(world, Lane::Interactive, company, (&order, "i2")));
        answers.push(submit_slow(world, Lane::Background, company, (&order, "b1")));
        drop(held);
        for answer in &answers {
            answer_of(answer).expect("committed");
        }
        let order = order.lock();
        let of_lane = |lane| order.iter().copied().filter(|name| name.starts_with(lane)).collect::<Vec<_>>();
        assert_eq!(of_lane('o'), outcomes);
        assert_eq!(of_lane('i'), ["i1", "i2"]);
        let place = |name| order.iter().position(|other| *other == name).expect("it ran");
        assert!(place("i2") < place("o8") && place("b1") < place("o8"), "{order:?}");
    });
}

/// A job of a hot family with a hundred rows.
struct Heavy {
    company: CompanyId,
    batches: Arc<Mutex<Vec<usize>>>,
    answer: Sender<Result<(), Error>>,
}

impl Job for Heavy {
    fn company(&self) -> CompanyId {
        self.company
    }

    fn family(&self) -> Option<TypeId> {
        Some(TypeId::of::<Self>())
    }

    fn most_together(&self) -> usize {
        64
    }

    fn weight(&self) -> usize {
        100
    }

    fn run(&mut self, rest: &mut [Box<dyn Job>], _: &mut Tx) -> Result<Verdict, Error> {
        self.batches.lock().push(1 + rest.len());
        thread::sleep(SLOW * u32::try_from(1 + rest.len()).expect("a few"));
        Ok(Verdict::Commit)
    }

    fn settle(self: Box<Self>, outcome: Result<(), Error>) {
        let _ = self.answer.send(outcome);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[test]
fn a_family_that_turns_out_slow_runs_in_small_batches() {
    with_sqlite(|world| {
        let company = world.company("acme");
        let batches = Arc::default();
        let held = world.hold_writer(company);
        let submit = |_| {
            let (answer, answered) = channel();
            let job = Heavy { company, batches: Arc::clone(&batches), answer };
            world.store.submit(Lane::Outcome, Box::new(job));
            answered
        };
        let answers: Vec<_> = (0..10).map(submit).collect();
        drop(held);
        for answer in &answers {
            answer_of(answer).expect("committed");
        }
        assert_eq!(*batches.lock(), [1; 10]);
    });
}
