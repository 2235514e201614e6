//! Small stages are counted exactly; large ones show a count as of an earlier time.

use rapport_domain::account::Account;
use rapport_domain::money::{Amount, Currency, Money};
use rapport_domain::pipeline::Status;
use rapport_store::account_list::CappedCount;
use rapport_store::stage_totals::{self, LIVE_ACCOUNTS, Stage};

use crate::support::{World, new_account, on_both_engines, time};

const STEP: i64 = 1_000;

fn worth(number: u64, status: Status, amount: &str, currency: &str) -> Account {
    let amount = Amount::parse(amount).expect("an amount");
    let value = Money { amount, currency: Currency::parse(currency).expect("a currency") };
    Account { status, value: Some(value), ..new_account(number, "Valued") }
}

fn shown(stage: &Stage) -> (i64, Vec<String>) {
    let values = stage.values.iter();
    let values = values.map(|value| format!("{} {}", value.amount_text(), value.currency.code()));
    (stage.accounts.count, values.collect())
}

fn stages(world: &World, company: rapport_domain::id::CompanyId) -> Vec<Stage> {
    world.read(company, stage_totals::stages)
}

#[test]
fn small_stages_are_exact_and_currencies_are_never_added() {
    on_both_engines(|world| {
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let greatest = "99999999999999.9999";
        world.insert(
            acme,
            vec![
                worth(1, Status::Customer, "10.5", "EUR"),
                worth(2, Status::Customer, "0.0001", "EUR"),
                worth(3, Status::Customer, "7", "JPY"),
                Account { status: Status::Customer, ..new_account(4, "No value") },
                worth(5, Status::Lost, greatest, "USD"),
                worth(6, Status::Lost, greatest, "USD"),
                worth(7, Status::Prospect, "0", "USD"),
            ],
        );
        world.insert(globex, vec![worth(1, Status::Customer, "1", "EUR")]);
        let found = stages(world, acme);
        assert_eq!(found.iter().map(|stage| stage.status).collect::<Vec<_>>(), Status::ALL);
        assert!(found.iter().all(|stage| stage.as_of.is_none() && !stage.accounts.capped));
        let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(shown(&found[0]), (1, text(&[])), "no value, no line");
        assert_eq!(shown(&found[4]), (4, text(&["10.5001 EUR", "7 JPY"])));
        assert_eq!(shown(&found[5]), (2, text(&["199999999999999.9998 USD"])));
        assert_eq!(shown(&found[6]), (0, text(&[])));
    });
}

#[test]
fn sums_beyond_the_largest_amount_are_not_an_error() {
    on_both_engines(|world| {
        let acme = world.company("acme");
        let accounts = (0..12).map(|n| worth(n, Status::Lost, "99999999999999.9999", "USD"));
        world.insert(acme, accounts.collect());
        let found = stages(world, acme);
        assert_eq!(found[5].values[0].amount.ten_thousandths(), i64::MAX);
    });
}

#[test]
fn a_large_stage_shows_its_last_count() {
    on_both_engines(|world| {
        let acme = world.company("acme");
        let many = u64::try_from(LIVE_ACCOUNTS).expect("a number");
        for chunk in (0..many).collect::<Vec<_>>().chunks(500) {
            let accounts = chunk.iter().map(|n| worth(*n, Status::Prospect, "2", "EUR"));
            world.insert(acme, accounts.collect());
        }
        world.insert(acme, vec![worth(many, Status::Lost, "5", "USD")]);
        let live = stages(world, acme);
        assert_eq!(
            (shown(&live[0]).0, live[0].as_of),
            (LIVE_ACCOUNTS, None),
            "the most that is counted live"
        );
        world.insert(acme, vec![new_account(many + 1, "One more")]);
        let uncounted = stages(world, acme);
        assert_eq!(uncounted[0].accounts, CappedCount { count: LIVE_ACCOUNTS, capped: true });
        assert!(uncounted[0].values.is_empty());
        let totals = world.read(acme, |snapshot| stage_totals::count_all(snapshot, STEP));
        assert!(stage_totals::has_large_stage(&totals));
        let kept = totals.clone();
        world.write(acme, move |tx| stage_totals::keep(tx, &kept, time(5))).expect("kept");
        assert_eq!(world.read(acme, stage_totals::kept).expect("kept").totals, totals);
        world.insert(acme, vec![worth(many + 2, Status::Lost, "1", "USD")]);
        let found = stages(world, acme);
        assert_eq!(
            (shown(&found[0]), found[0].as_of),
            ((2_001, vec!["4000.00 EUR".to_owned()]), Some(time(5)))
        );
        assert_eq!(
            (shown(&found[5]), found[5].as_of),
            ((2, vec!["6.00 USD".to_owned()]), None),
            "still live"
        );
        // A new count replaces the previous one completely.
        world.change("DELETE FROM account WHERE value_currency = 'USD'");
        let totals = world.read(acme, |snapshot| stage_totals::count_all(snapshot, STEP));
        world.write(acme, move |tx| stage_totals::keep(tx, &totals, time(6))).expect("kept");
        assert_eq!(world.number("SELECT count(*) FROM stage_total WHERE currency = 'USD'"), 0);
    });
}

#[test]
fn a_count_in_steps_misses_nothing_and_counts_nothing_twice() {
    on_both_engines(|world| {
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let greatest = "99999999999999.9999";
        world.insert(acme, (0..5).map(|n| worth(n, Status::Customer, "2.5", "EUR")).collect());
        world.insert(acme, (5..8).map(|n| worth(n, Status::Customer, "7", "JPY")).collect());
        world.insert(acme, (8..12).map(|n| new_account(n, "No value")).collect());
        world.insert(acme, (12..24).map(|n| worth(n, Status::Lost, greatest, "USD")).collect());
        world.insert(globex, vec![worth(1, Status::Customer, "1", "EUR")]);
        let count = |step| world.read(acme, move |snapshot| stage_totals::count_all(snapshot, step));
        let at_once = count(STEP);
        let shown = at_once.iter().map(|total| {
            let value = total.value.map(|value| (value.currency.code(), value.amount.ten_thousandths()));
            (total.status, total.accounts, value)
        });
        let expected = [
            (Status::Prospect, 4, None),
            (Status::Customer, 5, Some(("EUR", 125_000))),
            (Status::Customer, 3, Some(("JPY", 210_000))),
            (Status::Lost, 12, Some(("USD", i64::MAX))),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        // 24 accounts: steps of one account, some that end with a stage or with the company, and some that don't.
        for step in [1, 2, 4, 5, 7, 12, 23, 24, 25] {
            assert_eq!(count(step), at_once, "in steps of {step}");
        }
        assert_eq!(world.read(world.company("initech"), |snapshot| stage_totals::count_all(snapshot, 1)), []);
    });
}
