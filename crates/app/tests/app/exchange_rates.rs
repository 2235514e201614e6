//! Exchange rates of a company, and the totals that they convert.

use rapport_app::exchange_rate::{AddRate, ChangeRate, DeleteRate};
use rapport_app::read::exchange_rate::{self, RatesPage, Wanted};
use rapport_app::read::pipeline;
use rapport_app::{Error, read};
use rapport_domain::channel_total::Sum;
use rapport_domain::exchange_rate::{ExchangeRate, NewRate, RatePatch};
use rapport_domain::member::Role;
use rapport_domain::money::Currency;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_testkit::{Engine, TestApp, TestClock, TestCompany};
use serde_json::{Value, json};

use crate::refusal;

fn currency(code: &str) -> Currency {
    Currency::parse(code).unwrap()
}

fn new_rate(of: &str, from: &str, rate: &str) -> NewRate {
    let body = json!({"currency": of, "valid_from": from, "rate": rate});
    NewRate::parse(body.as_object().unwrap()).unwrap()
}

fn add(company: &TestCompany, of: &str, from: &str, rate: &str) -> Result<ExchangeRate, Error> {
    company.write(AddRate { rate: new_rate(of, from, rate), base: None })
}

fn patch(body: Value) -> RatePatch {
    RatePatch::parse(body.as_object().unwrap()).unwrap()
}

fn page(company: &TestCompany) -> RatesPage {
    company.view(|snapshot, viewer| exchange_rate::page(snapshot, viewer, Wanted::default(), 50))
}

fn listed(company: &TestCompany) -> Vec<String> {
    let shown =
        |rate: ExchangeRate| format!("{} {} {}", rate.currency.code(), rate.valid_from, rate.rate.text());
    page(company).rates.items.into_iter().map(shown).collect()
}

fn codes(currencies: &[Currency]) -> Vec<&'static str> {
    currencies.iter().map(|currency| currency.code()).collect()
}

/// The sum of the customers in the default currency, and what couldn't be converted.
fn customers(company: &TestCompany) -> (Option<Sum>, Vec<&'static str>) {
    let board = company.view(|snapshot, viewer| pipeline::board(snapshot, viewer, |_| (None, 1)));
    let stage = board.stages.iter().find(|(stage, _)| stage.status == Status::Customer);
    let values = &stage.expect("the stage").0.values;
    let sums = values.iter().map(|value| (value.currency, Sum::from(value.amount.ten_thousandths())));
    let total = board.rates.total(sums);
    (total.sum(), total.unconverted().map(|part| part.currency.code()).collect())
}

fn account(company: &TestCompany, id: &str, amount: &str, of: &str) {
    company.upsert(json!({
        "imported_id": id, "status": "customer", "captured_value": amount, "captured_value_currency": of,
    }));
}

#[test]
fn a_rate_is_added_changed_and_deleted_and_a_day_has_one() {
    TestApp::on_both(|app| {
        let globex = app.company("globex");
        let first = add(app, "CHF", "2026-01-01", "1.10").unwrap();
        add(app, "CHF", "2026-01-05", "1.12").unwrap();
        assert_eq!(refusal(add(app, "CHF", "2026-01-05", "1.13")), "conflict rate_taken");
        assert_eq!(refusal(add(app, "USD", "2026-01-05", "1")), "invalid /currency default_currency");
        add(&globex, "CHF", "2026-01-05", "7").unwrap();
        assert_eq!(listed(app), ["CHF 2026-01-05 1.12", "CHF 2026-01-01 1.1"]);

        let change =
            |company: &TestCompany, body| company.write(ChangeRate { id: first.id, patch: patch(body) });
        assert_eq!(refusal(change(app, json!({"valid_from": "2026-01-05"}))), "conflict rate_taken");
        assert_eq!(refusal(change(&globex, json!({"rate": "2"}))), "no such exchange rate");
        let entries = app.rows("audit");
        assert_eq!(change(app, json!({"rate": "1.1000"})).unwrap(), first);
        assert_eq!(app.rows("audit"), entries, "nothing changed, nothing is recorded");
        change(app, json!({"valid_from": "2025-12-01", "rate": "1.09"})).unwrap();
        assert_eq!(listed(app), ["CHF 2026-01-05 1.12", "CHF 2025-12-01 1.09"]);

        assert_eq!(refusal(globex.write(DeleteRate(first.id))), "no such exchange rate");
        app.write(DeleteRate(first.id)).unwrap();
        assert_eq!(refusal(app.write(DeleteRate(first.id))), "no such exchange rate");
        assert_eq!((listed(app).len(), listed(&globex).len()), (1, 1));
    });
}

#[test]
fn rates_are_changed_by_who_may_change_the_settings() {
    TestApp::on_both(|app| {
        let known = add(app, "CHF", "2026-01-01", "1.10").unwrap();
        for role in [Role::Viewer, Role::Member] {
            let token = app.token_of(role);
            let rate = new_rate("CHF", "2026-01-02", "1.10");
            assert_eq!(
                refusal(app.write_as(&token, AddRate { rate, base: None })),
                "forbidden role_required"
            );
            let change = ChangeRate { id: known.id, patch: patch(json!({"rate": "2"})) };
            assert_eq!(refusal(app.write_as(&token, change)), "forbidden role_required");
            assert_eq!(refusal(app.write_as(&token, DeleteRate(known.id))), "forbidden role_required");
        }
        assert_eq!(listed(app), ["CHF 2026-01-01 1.1"]);
    });
}

#[test]
fn totals_use_the_rate_in_force_today_in_the_companys_time_zone() {
    for engine in Engine::BOTH {
        // In Auckland it is the 6th already.
        let app = TestApp::with_clock(engine, TestClock::at(Time::parse("2026-01-05T12:00:00Z").unwrap()));
        account(&app, "a", "1000", "CHF");
        account(&app, "b", "500", "USD");
        account(&app, "c", "300", "SEK");
        assert_eq!(customers(&app), (Some(5_000_000), vec!["CHF", "SEK"]), "nothing without a rate");
        assert_eq!(codes(&page(&app).missing), ["CHF", "SEK"]);
        add(&app, "CHF", "2026-01-06", "1.2").unwrap();
        assert_eq!(customers(&app), (Some(5_000_000), vec!["CHF", "SEK"]), "from tomorrow on");
        app.set(json!({"time_zone": "Pacific/Auckland"}));
        assert_eq!(customers(&app), (Some(17_000_000), vec!["SEK"]), "on {engine}");
        assert_eq!(codes(&page(&app).missing), ["SEK"]);
        add(&app, "CHF", "2026-01-08", "2").unwrap();
        app.clock().advance_days(1);
        assert_eq!(customers(&app).0, Some(17_000_000), "on {engine}");
        app.clock().advance_days(1);
        assert_eq!(customers(&app).0, Some(25_000_000), "on {engine}");
        let figures = app.view(read::dashboard::figures);
        assert_eq!(figures.rates.of(currency("CHF")).unwrap().rate.text(), "2", "on {engine}");
    }
}

#[test]
fn rates_to_another_default_currency_are_kept_and_not_used() {
    TestApp::on_both(|app| {
        account(app, "a", "1000", "CHF");
        let to_usd = add(app, "CHF", "2026-01-01", "1.1").unwrap();
        assert_eq!(customers(app), (Some(11_000_000), vec![]));
        app.set(json!({"default_currency": "EUR"}));
        assert_eq!(customers(app), (None, vec!["CHF"]), "a rate to USD says nothing about EUR");
        assert_eq!((listed(app).len(), codes(&page(app).former)), (0, vec!["USD"]));
        assert_eq!(codes(&page(app).missing), ["CHF"]);
        add(app, "CHF", "2026-01-01", "1.05").unwrap();
        assert_eq!(customers(app), (Some(10_500_000), vec![]));
        // A deleted one is restored for the currency that it was a rate to.
        app.write(DeleteRate(to_usd.id)).unwrap();
        app.write(AddRate { rate: new_rate("CHF", "2026-01-01", "1.1"), base: Some(currency("USD")) })
            .unwrap();
        assert_eq!(customers(app).0, Some(10_500_000));
        app.set(json!({"default_currency": "USD"}));
        assert_eq!(customers(app), (Some(11_000_000), vec![]), "back again");
        app.set(json!({"default_currency": "CHF"}));
        assert_eq!(customers(app), (Some(10_000_000), vec![]), "nothing to convert");
    });
}
