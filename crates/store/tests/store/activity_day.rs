//! A company's activity per day adds up over shards, and old days are deleted.

use std::collections::BTreeMap;

use rapport_domain::time::Day;
use rapport_store::activity_day;

use crate::support::on_both_engines;

const TODAY: Day = Day::from_number(20_000);

#[test]
fn days_add_up_over_shards_and_companies_stay_apart() {
    on_both_engines(|world| {
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let add = |company, days: &[(Day, i64)], spread| {
            let days: BTreeMap<Day, i64> = days.iter().copied().collect();
            world.write(company, move |tx| activity_day::add(tx, &days, spread)).expect("added");
        };
        add(acme, &[(TODAY, 3), (TODAY.minus_days(89), 1)], 0);
        add(acme, &[(TODAY, 4)], 1);
        add(acme, &[(TODAY, 5)], 1);
        add(acme, &[(TODAY, 6)], 255);
        add(acme, &[(TODAY.minus_days(90), 100)], 0);
        add(globex, &[(TODAY, 1)], 0);
        let days = world.read(acme, |snapshot| activity_day::days(snapshot, TODAY));
        assert_eq!(days, [(TODAY.minus_days(89), 1), (TODAY, 18)], "ninety days up to today");
        assert_eq!(world.rows_of("activity_day"), 6);
        world.write(acme, |tx| activity_day::prune(tx, TODAY)).expect("pruned");
        assert_eq!(world.read(acme, |snapshot| activity_day::days(snapshot, TODAY)), [(TODAY, 18)]);
        assert_eq!(world.read(globex, |snapshot| activity_day::days(snapshot, TODAY)), [(TODAY, 1)]);
    });
}
