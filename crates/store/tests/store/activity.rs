//! Counters add up, first and last seen widen, event_ids are used once, and pages have no gaps.

use rapport_domain::activity::EventMark;
use rapport_domain::id::CompanyId;
use rapport_domain::time::{Day, Time};
use rapport_store::Database;
use rapport_store::activity::{self, Count, FeatureUse, NewActivity, Seen};
use rapport_testkit::{old_database, open};

use crate::support::{World, account_id, fresh_postgres, new_account, on_both_engines, patient, time};

const TODAY: Day = Day::from_number(20_000);

fn count(world: &World, company: CompanyId, day: Day, feature: &'static str, count: i64, at: Time) {
    let account = account_id(1);
    let counted = world.write(company, move |tx| {
        activity::count(tx, &[Count { account, day, feature, count, last_used_at: at }])
    });
    counted.expect("counted");
}

#[test]
fn counters_add_up_by_day_and_feature() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, vec![new_account(1, "Nordlys")]);
        count(world, company, TODAY, "", 3, time(1));
        count(world, company, TODAY, "export", 2, time(9));
        count(world, company, TODAY, "export", 5, time(4));
        count(world, company, TODAY.minus_days(89), "import", 7, time(2));
        count(world, company, TODAY.minus_days(90), "export", 100, time(0));
        count(world, company, Day::from_number(TODAY.number() + 1), "later", 100, time(0));
        count(world, company, TODAY, "also", 7, time(3));
        let days = world.read(company, |snapshot| activity::days(snapshot, account_id(1), TODAY));
        assert_eq!(days, [(TODAY.minus_days(89), 7), (TODAY, 17)], "ninety days up to today");
        let features = world.read(company, |snapshot| activity::features(snapshot, account_id(1)));
        let used =
            |feature: &str, count, at| FeatureUse { feature: feature.to_owned(), count, last_used_at: at };
        let expected = [
            used("export", 107, time(9)),
            used("later", 100, time(0)),
            used("also", 7, time(3)),
            used("import", 7, time(2)),
        ];
        assert_eq!(features, expected, "most used first, then by name; the latest use is kept");
    });
}

#[test]
fn twenty_features_are_shown() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, vec![new_account(1, "Nordlys")]);
        let counted = world.write(company, |tx| {
            let names: Vec<String> = (0..30).map(|n| format!("feature {n:02}")).collect();
            let counts: Vec<Count> = names
                .iter()
                .zip(1..)
                .map(|(name, count)| Count {
                    account: account_id(1),
                    day: TODAY,
                    feature: name,
                    count,
                    last_used_at: time(0),
                })
                .collect();
            activity::count(tx, &counts)
        });
        counted.expect("counted");
        let features = world.read(company, |snapshot| activity::features(snapshot, account_id(1)));
        assert_eq!(features.len(), 20);
        assert_eq!((features[0].count, features[19].count), (30, 11));
    });
}

/// A node of the previous release writes only the day.
#[test]
fn sightings_by_the_previous_release_have_their_minute() {
    let database = Database::Postgres(fresh_postgres());
    old_database::create(&database, 1);
    let world = World { store: open(&patient(database.clone())), database };
    let minute = || world.number("SELECT last_seen_minute FROM account_seen");
    world.change("UPDATE account_seen SET last_seen_at = 180000000");
    assert_eq!(minute(), 3);
    world.change("DELETE FROM account_seen");
    world.change(
        "INSERT INTO account_seen (company, account, first_seen_at, last_seen_at, last_seen_day) \
         SELECT company, id, 1, 240000000, 0 FROM account",
    );
    assert_eq!(minute(), 4);
}

#[test]
fn sightings_only_widen() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, vec![new_account(1, "Nordlys"), new_account(2, "Other")]);
        let see = |first, last| {
            let day = Day::from_number(100);
            let seen = move |n| Seen { account: account_id(n), first: time(first), last: time(last), day };
            world.write(company, move |tx| activity::see(tx, &[seen(1), seen(2)])).expect("seen");
            let times = world.read(company, |snapshot| activity::seen(snapshot, account_id(1)));
            let minute = world.number("SELECT max(last_seen_minute) FROM account_seen") - time(0).minute();
            let (first, last) = times.expect("a seen account");
            (first.micros_since(time(0)) / 1_000_000, last.micros_since(time(0)) / 1_000_000, minute)
        };
        let unseen = world.read(company, |snapshot| activity::seen(snapshot, account_id(1)));
        assert_eq!(unseen, None);
        assert_eq!(see(70, 80), (70, 80, 1));
        assert_eq!(see(72, 75), (70, 80, 1), "within the known range");
        assert_eq!(see(5, 5), (5, 80, 1), "earlier");
        assert_eq!(see(90, 100), (5, 100, 1), "later, in the same minute");
        assert_eq!(see(180, 190), (5, 190, 3), "later, in another one");
        assert_eq!(see(3, 300), (3, 300, 5), "earlier, and later in another one");
        let account = world.account(company, account_id(1)).expect("there");
        assert_eq!((account.first_seen_at, account.last_seen_at), (Some(time(3)), Some(time(300))));
    });
}

#[test]
fn sightings_of_one_call_widen_each_account_in_its_way() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, (1..=6).map(|n| new_account(n, &format!("Account {n}"))).collect());
        let see = |times: Vec<(u64, i64, i64)>| {
            let day = Day::from_number(100);
            let seen: Vec<Seen> = times
                .into_iter()
                .map(|(n, first, last)| Seen {
                    account: account_id(n),
                    first: time(first),
                    last: time(last),
                    day,
                })
                .collect();
            world.write(company, move |tx| activity::see(tx, &seen)).expect("seen");
        };
        see((1..=5).map(|n| (n, 70, 80)).collect());
        let now = [(1, 75, 85), (2, 130, 140), (3, 10, 20), (4, 10, 140), (5, 71, 72), (6, 200, 210)];
        see(now.to_vec());
        let wide = [(70, 85, 1), (70, 140, 2), (10, 80, 1), (10, 140, 2), (70, 80, 1), (200, 210, 3)];
        for (n, (first, last, minute)) in (1..=6).zip(wide) {
            let times = world.read(company, move |snapshot| activity::seen(snapshot, account_id(n)));
            assert_eq!(times, Some((time(first), time(last))), "account {n}");
            let same = format!(
                "SELECT count(*) FROM account_seen WHERE last_seen_at = {} AND last_seen_minute = {}",
                time(last).as_micros(),
                time(0).minute() + minute
            );
            assert!(world.number(&same) > 0, "account {n}");
        }
    });
}

#[test]
fn an_event_id_is_taken_for_ninety_days() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let take = |ids: &'static [&'static str], now: Time| {
            let fresh = world.write(company, move |tx| {
                let marks: Vec<EventMark> = ids.iter().map(|id| EventMark::of(id)).collect();
                activity::take_marks(tx, &marks, now)
            });
            let fresh = fresh.expect("taken");
            ids.iter().map(|id| fresh.contains(&EventMark::of(id))).collect::<Vec<bool>>()
        };
        let start = time(0);
        assert_eq!(take(&["a", "b"], start), [true, true]);
        assert_eq!(take(&["a", "c"], start), [false, true]);
        let almost = Time::from_micros(start.plus_days(90).as_micros() - 1);
        assert_eq!(take(&["a"], almost), [false]);
        assert_eq!(take(&["a", "b"], start.plus_days(90)), [true, true], "free again");
        assert_eq!(take(&["a"], start.plus_days(179)), [false], "and in use again from then on");
    });
}

#[test]
fn activity_pages_have_no_gaps_and_no_repeats() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, vec![new_account(1, "Nordlys"), new_account(2, "Other")]);
        let written = world.write(company, |tx| {
            // Five events in each of five seconds, out of order, and some of another account.
            let event = |n: i64| NewActivity {
                account: account_id(if n % 6 == 5 { 2 } else { 1 }),
                occurred_at: time(n * 7 % 5),
                received_at: time(n),
                kind: "custom",
                feature: (n % 2 == 0).then_some("export"),
                metadata: (n % 3 == 0).then_some(r#"{"n":1.0}"#),
            };
            activity::insert(tx, &(0..30).map(event).collect::<Vec<_>>())
        });
        written.expect("written");
        for limit in [1, 4, 25, 100] {
            let mut all = Vec::new();
            let mut before = None;
            loop {
                let page = world
                    .read(company, move |snapshot| activity::list(snapshot, account_id(1), before, limit));
                before = page.items.last().map(|event| (event.occurred_at, event.seq));
                all.extend(page.items);
                if !page.more {
                    break;
                }
            }
            assert_eq!(all.len(), 25, "pages of {limit}");
            assert!(all.is_sorted_by(|a, b| (a.occurred_at, a.seq) > (b.occurred_at, b.seq)), "latest first");
            let kept = all.iter().find(|event| event.received_at == time(6)).expect("the seventh");
            assert_eq!((kept.occurred_at, kept.kind.as_str()), (time(2), "custom"));
            assert_eq!(
                (kept.feature.as_deref(), kept.metadata.as_deref()),
                (Some("export"), Some(r#"{"n":1.0}"#))
            );
        }
    });
}
