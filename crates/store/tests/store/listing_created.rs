//! The account list filtered by when accounts were created, on both engines.

use rapport_domain::account::Account;
use rapport_domain::id::{AccountId, CompanyId, lowest_at};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_store::Query as _;
use rapport_store::account_list::{AccountFilter, ListAccounts, Sort, count_capped};

use crate::support::{World, on_both_engines, time};

const DAY_SECONDS: i64 = 86_400;

/// Ten accounts, one created at the beginning of each day.
fn fill(world: &World) -> CompanyId {
    let company = world.company("acme");
    let account = |n: i64| {
        let (at, status) = (day(n), Status::ALL[usize::from(n % 2 == 0)]);
        Account::new(lowest_at::<AccountId>(at), format!("Account {n}"), status, at)
    };
    world.insert(company, (0..10).map(account).collect());
    company
}

fn day(n: i64) -> Time {
    time(n * DAY_SECONDS)
}

#[test]
fn a_time_is_included_at_the_beginning_and_excluded_at_the_end() {
    on_both_engines(|world| {
        let company = fill(world);
        let table = [
            (None, None, 0..10),
            (Some(day(3)), None, 3..10),
            (Some(day(3).plus_millis(1)), None, 4..10),
            (None, Some(day(3)), 0..3),
            (None, Some(day(3).plus_millis(1)), 0..4),
            (Some(day(2)), Some(day(5)), 2..5),
            (Some(day(5)), Some(day(2)), 5..5),
            (Some(day(20)), None, 10..10),
        ];
        for (created_since, created_before, expected) in table {
            for statuses in [vec![], vec![Status::ALL[1]]] {
                let filter =
                    AccountFilter { created_since, created_before, statuses, ..AccountFilter::default() };
                let is_asked = |n: &i64| filter.statuses.is_empty() || n % 2 == 0;
                let expected: Vec<String> =
                    expected.clone().filter(is_asked).map(|n| format!("Account {n}")).collect();
                for sort in Sort::all() {
                    let list =
                        ListAccounts { filter: filter.clone(), sort, cursor: None, limit: 50, now: time(0) };
                    let page = world.read(company, move |snapshot| list.run(snapshot));
                    let mut names: Vec<String> = page.items.into_iter().map(|account| account.name).collect();
                    names.sort();
                    assert_eq!(names, expected, "{filter:?} {sort:?}");
                }
                let asked = filter.clone();
                let count = world.read(company, move |snapshot| count_capped(snapshot, &asked, time(0), 40));
                assert_eq!(usize::try_from(count.count), Ok(expected.len()), "{filter:?}");
            }
        }
    });
}
