//! Recent events are counted from a given time, and moves are listed newest first.

use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AccountId, HistoryId, IdSequence};
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Time;
use rapport_store::{history, recent};

use crate::support::{new_account, on_both_engines, time};

fn entry(account: AccountId, at: Time, from: Option<Status>) -> HistoryEntry {
    let id: HistoryId = IdSequence::default().next(at, [3; 10]);
    let (to, source, actor) = (Status::Contacted, Source::Operator, Actor::System);
    HistoryEntry { id, account, from, to, source, actor, note: None, at, happened_at: None }
}

#[test]
fn moves_and_new_accounts_are_counted_from_a_time_on() {
    on_both_engines(|world| {
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let made = |at: Time| -> AccountId { IdSequence::default().next(at, [1; 10]) };
        for (company, at) in [(acme, 0), (acme, 100), (acme, 200), (globex, 200)] {
            let mut account = new_account(0, &format!("Made at {at}"));
            account.id = made(time(at));
            world.insert(company, vec![account]);
            world
                .write(company, move |tx| {
                    let (first, moved) = (entry(made(time(at)), time(at), None), time(at + 50));
                    history::insert(tx, &[first, entry(made(time(at)), moved, Some(Status::Prospect))])
                })
                .expect("written");
        }
        let accounts = world.read(acme, |snapshot| recent::new_accounts(snapshot, time(100)));
        assert_eq!((accounts.count, accounts.capped), (2, false));
        let moves = world.read(acme, |snapshot| recent::count_moves(snapshot, time(150)));
        assert_eq!((moves.count, moves.capped), (2, false), "first entries are not moves");
        let page = world.read(acme, |snapshot| recent::moves(snapshot, None, 2));
        let names: Vec<&str> = page.items.iter().map(|moved| moved.name.as_str()).collect();
        assert_eq!((names, page.more), (vec!["Made at 200", "Made at 100"], true));
        let last = page.items[1].entry.id;
        let rest = world.read(acme, move |snapshot| recent::moves(snapshot, Some(last), 2));
        assert_eq!((rest.items[0].name.as_str(), rest.items.len(), rest.more), ("Made at 0", 1, false));
    });
}
