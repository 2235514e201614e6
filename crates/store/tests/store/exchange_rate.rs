//! The rate in force is found by day, and rates are listed by currency.

use rapport_domain::exchange_rate::{self as rule, ExchangeRate, Rate};
use rapport_domain::id::{CompanyId, ExchangeRateId};
use rapport_domain::money::Currency;
use rapport_domain::time::Day;
use rapport_store::exchange_rate::{self, Listed, Place};
use rapport_store::stage_totals;
use rapport_testkit::{old_database, open};

use crate::support::{World, for_each_database, on_both_engines, patient, time};

fn currency(code: &str) -> Currency {
    Currency::parse(code).expect("a currency")
}

fn day(text: &str) -> Day {
    Day::of(text.parse().expect("a date"))
}

fn rate(number: u8, base: &str, of: &str, from: &str, text: &str) -> ExchangeRate {
    ExchangeRate {
        id: ExchangeRateId::from_bytes([number; 16]),
        base: currency(base),
        currency: currency(of),
        valid_from: day(from),
        rate: Rate::parse(text).expect("a rate"),
        created_at: time(1),
    }
}

fn insert(world: &World, company: CompanyId, rates: &[ExchangeRate]) {
    for rate in rates {
        let rate = *rate;
        world.write(company, move |tx| exchange_rate::insert(tx, &rate)).expect("inserted");
    }
}

/// Rates of two currencies to two bases, in no order.
fn rates() -> Vec<ExchangeRate> {
    vec![
        rate(1, "EUR", "CHF", "2026-03-01", "1.05"),
        rate(2, "EUR", "USD", "2026-01-01", "0.92"),
        rate(3, "EUR", "CHF", "2026-06-01", "99999999.9999999999"),
        rate(4, "EUR", "CHF", "2026-01-01", "0.0000000001"),
        rate(5, "USD", "CHF", "2026-02-01", "1.13"),
    ]
}

#[test]
fn the_rate_in_force_is_the_one_that_the_rule_names() {
    on_both_engines(|world| {
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let known = rates();
        insert(world, acme, &known);
        insert(world, globex, &[rate(9, "EUR", "CHF", "2026-04-01", "7")]);
        let all = ["CHF", "USD", "EUR", "SEK", "CHF"].map(currency);
        for base in ["EUR", "USD", "CHF"].map(currency) {
            for on in ["2025-12-31", "2026-01-01", "2026-02-28", "2026-03-01", "2026-05-31", "2026-06-01"] {
                let on = day(on);
                let found =
                    world.read(acme, move |snapshot| exchange_rate::in_force(snapshot, base, all, on));
                for of in all {
                    let expected = rule::in_force(&known, base, of, on);
                    assert_eq!(found.of(of), expected, "{of:?} in {base:?} on {on}");
                }
            }
        }
    });
}

#[test]
fn rates_are_listed_by_currency_with_the_latest_first_in_pages_of_any_size() {
    on_both_engines(|world| {
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let known = rates();
        insert(world, acme, &known);
        let list = |company, base: &str, of: Option<&str>, limit: i64| {
            let listed = Listed { base: currency(base), currency: of.map(currency) };
            let (mut after, mut found): (Option<Place>, Vec<ExchangeRate>) = (None, Vec::new());
            loop {
                let page =
                    world.read(company, move |snapshot| exchange_rate::list(snapshot, listed, after, limit));
                assert!(page.items.len() <= usize::try_from(limit).expect("small"), "{limit}");
                found.extend(page.items);
                after = found.last().map(|last| (last.currency, last.valid_from));
                if !page.more {
                    return found;
                }
            }
        };
        for limit in [1, 2, 3, 50] {
            assert_eq!(list(acme, "EUR", None, limit), [known[2], known[0], known[3], known[1]], "{limit}");
            assert_eq!(list(acme, "EUR", Some("CHF"), limit), [known[2], known[0], known[3]], "{limit}");
            assert_eq!(list(acme, "EUR", Some("USD"), limit), [known[1]], "{limit}");
            assert_eq!(list(acme, "USD", None, limit), [known[4]], "{limit}");
            assert_eq!(list(acme, "SEK", None, limit), [], "{limit}");
            assert_eq!(list(globex, "EUR", None, limit), [], "{limit}");
        }
        assert_eq!(world.read(acme, exchange_rate::bases), ["EUR", "USD"].map(currency));
        assert_eq!(world.read(globex, exchange_rate::bases), []);
    });
}

#[test]
fn a_rate_is_changed_and_deleted_alone_and_one_day_has_one_rate() {
    on_both_engines(|world| {
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let known = rates();
        insert(world, acme, &known);
        let (first, id) = (known[0], known[0].id);
        let of = |company| world.read(company, move |snapshot| exchange_rate::get(snapshot, id));
        assert_eq!((of(acme), of(globex)), (Some(first), None));
        let on_day = |day: Day| {
            let (base, of) = (first.base, first.currency);
            world.read(acme, move |snapshot| exchange_rate::on_day(snapshot, base, of, day))
        };
        assert_eq!((on_day(first.valid_from), on_day(day("2026-03-02"))), (Some(id), None));
        let twin = ExchangeRate { id: ExchangeRateId::from_bytes([8; 16]), ..first };
        world.write(acme, move |tx| exchange_rate::insert(tx, &twin)).expect_err("the day is taken");
        let changed =
            ExchangeRate { valid_from: day("2026-03-02"), rate: Rate::parse("2").expect("a rate"), ..first };
        world.write(acme, move |tx| exchange_rate::update(tx, &changed)).expect("changed");
        assert_eq!((of(acme), on_day(first.valid_from)), (Some(changed), None));
        world.write(globex, move |tx| exchange_rate::delete(tx, id)).expect("nothing to delete");
        assert_eq!(of(acme), Some(changed), "another company's");
        world.write(acme, move |tx| exchange_rate::delete(tx, id)).expect("deleted");
        assert_eq!(of(acme), None);
    });
}

#[test]
fn values_of_a_database_from_before_there_were_rates_are_converted_with_a_new_one() {
    for_each_database(|database| {
        old_database::create(&database, 40);
        let world = World { store: open(&patient(database.clone())), database };
        let company = CompanyId(1);
        world.change(
            "UPDATE account SET value_amount = 100000, value_currency = 'CHF' WHERE status = 'customer'",
        );
        world.change(
            "UPDATE account SET value_amount = 100000, value_currency = 'SEK' WHERE status = 'in_trial'",
        );
        insert(&world, company, &[rate(1, "EUR", "CHF", "2026-01-01", "1.05")]);
        let total = world.read(company, |snapshot| {
            let stages = stage_totals::stages(snapshot)?;
            let values: Vec<_> = stages.into_iter().flat_map(|stage| stage.values).collect();
            let currencies = values.iter().map(|value| value.currency);
            let rates = exchange_rate::in_force(snapshot, currency("EUR"), currencies, day("2026-01-01"))?;
            Ok(rates
                .total(values.iter().map(|value| (value.currency, value.amount.ten_thousandths().into()))))
        });
        // Ten customers and ten trials, with ten of their currency each.
        assert_eq!(total.sum(), Some(1_050_000));
        let left: Vec<(&str, i128)> =
            total.unconverted().map(|part| (part.currency.code(), part.sum)).collect();
        assert_eq!(left, [("SEK", 1_000_000)]);
    });
}
