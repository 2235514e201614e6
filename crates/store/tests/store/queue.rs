//! The queue in front of the writers: bounded, honest about it, and emptied at the end.

use rapport_store::{Error, Lane, Verdict, account};

use crate::support::{World, answer_of, new_account, with_one_writer};

fn submit_insert(
    world: &World,
    lane: Lane,
    company: rapport_domain::id::CompanyId,
    number: u64,
) -> std::sync::mpsc::Receiver<Result<(), Error>> {
    world.submit(lane, company, move |tx| {
        account::insert(tx, &[&new_account(number, "Nordlys")])?;
        Ok(Verdict::Commit)
    })
}

#[test]
fn a_full_queue_answers_busy_at_once_and_stores_nothing() {
    with_one_writer(|world| {
        let company = world.company("acme");
        let held = world.hold_writer(company);
        let answers: Vec<_> =
            (0..1100).map(|number| submit_insert(world, Lane::Interactive, company, number)).collect();
        let turned_away =
            answers.iter().filter(|answer| matches!(answer.try_recv(), Ok(Err(Error::Busy)))).count();
        assert_eq!(turned_away, 1100 - 1024, "rejected while the writer was blocked");
        assert_eq!(world.store.figures().waiting, 1024);
        drop(held);
        // On a slow machine some of the accepted jobs may have waited too long by now.
        let done = answers[..1024].iter().filter(|answer| answer_of(answer).is_ok()).count();
        assert_eq!(world.rows_of("account"), i64::try_from(done).expect("a count"));
        assert_eq!(world.store.figures().waiting, 0);
    });
}

#[test]
fn work_that_waited_over_a_second_is_busy_but_outcomes_are_not() {
    with_one_writer(|world| {
        let company = world.company("acme");
        let held = world.hold_writer(company);
        let interactive = submit_insert(world, Lane::Interactive, company, 1);
        let outcome = submit_insert(world, Lane::Outcome, company, 2);
        let background = submit_insert(world, Lane::Background, company, 3);
        assert!(matches!(answer_of(&interactive), Err(Error::Busy)), "rejected while the writer was blocked");
        drop(held);
        answer_of(&outcome).expect("outcomes are never rejected");
        answer_of(&background).expect("background work can wait");
        assert_eq!(world.rows_of("account"), 2);
    });
}

#[test]
fn outcomes_are_never_turned_away() {
    with_one_writer(|world| {
        let company = world.company("acme");
        let held = world.hold_writer(company);
        let answers: Vec<_> =
            (0..1500).map(|number| submit_insert(world, Lane::Outcome, company, number)).collect();
        drop(held);
        for answer in &answers {
            answer_of(answer).expect("outcomes are never rejected");
        }
        assert_eq!(world.rows_of("account"), 1500);
    });
}

#[test]
fn closing_finishes_queued_work_and_accepts_no_more() {
    with_one_writer(|world| {
        let company = world.company("acme");
        let held = world.hold_writer(company);
        let lanes = [Lane::Outcome, Lane::Interactive, Lane::Background];
        let answers: Vec<_> = (0..30)
            .zip(lanes.into_iter().cycle())
            .map(|(n, lane)| submit_insert(world, lane, company, n))
            .collect();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| world.store.close());
            // Closed from here on, while the writer is still blocked.
            loop {
                let answer = world.submit(Lane::Outcome, company, |_| Ok(Verdict::Rollback));
                if matches!(answer.try_recv(), Ok(Err(Error::Closed))) {
                    break;
                }
            }
            drop(held);
            closing.join().expect("closed");
        });
        let mut done = 0;
        for (n, answer) in answers.iter().enumerate() {
            let answer = answer.try_recv().expect("an answer before closing ends");
            // On a slow machine, interactive work may have waited too long.
            let late = lanes[n % 3] == Lane::Interactive && matches!(answer, Err(Error::Busy));
            assert!(answer.is_ok() || late, "{answer:?}");
            done += i64::from(answer.is_ok());
        }
        assert_eq!(world.rows_of("account"), done);
        let read = world.store.read(company, |_| Ok(())).blocking_recv().expect("an answer");
        assert!(matches!(read, Err(Error::Closed)));
    });
}
