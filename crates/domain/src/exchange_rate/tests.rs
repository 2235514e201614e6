use serde_json::json;

use super::*;

fn currency(code: &str) -> Currency {
    Currency::parse(code).unwrap()
}

fn day(text: &str) -> Day {
    Day::of(text.parse().unwrap())
}

fn faults<T: std::fmt::Debug>(parsed: Result<T, Invalid>) -> Vec<(String, &'static str)> {
    parsed.unwrap_err().0.into_iter().map(|error| (error.pointer, error.code)).collect()
}

fn body(json: Value) -> Map<String, Value> {
    let Value::Object(body) = json else { panic!("an object") };
    body
}

#[test]
fn a_rate_is_exact_and_shown_without_needless_zeros() {
    let table = [
        ("0.92", 9_200_000_000, "0.92"),
        ("1.10", 11_000_000_000, "1.1"),
        ("007", 70_000_000_000, "7"),
        ("100", 1_000_000_000_000, "100"),
        ("0.0000000001", 1, "0.0000000001"),
        ("99999999.9999999999", 999_999_999_999_999_999, "99999999.9999999999"),
    ];
    for (text, units, shown) in table {
        let rate = Rate::parse(text).unwrap();
        assert_eq!((rate.ten_billionths(), rate.text().as_str()), (units, shown), "{text}");
        let number: Value = serde_json::from_str(text.trim_start_matches("00")).unwrap();
        assert_eq!(Rate::from_json(&number), Ok(rate), "{text} as a number");
    }
}

#[test]
fn other_rates_are_refused() {
    let table = [
        (json!("0"), "out_of_range"),
        (json!("0.00"), "out_of_range"),
        (json!("0.00000000001"), "out_of_range"),
        (json!("100000000"), "out_of_range"),
        (json!("-1"), "negative"),
        (json!("1,5"), "malformed"),
        (json!("1e3"), "malformed"),
        (json!(""), "malformed"),
        (json!(true), "wrong_type"),
    ];
    for (value, code) in table {
        assert_eq!(Rate::from_json(&value).unwrap_err().code, code, "{value}");
    }
}

#[test]
fn the_latest_rate_that_has_begun_is_in_force() {
    let rate = |base: &str, of: &str, from: &str, text: &str| ExchangeRate {
        id: ExchangeRateId::from_bytes([1; 16]),
        base: currency(base),
        currency: currency(of),
        valid_from: day(from),
        rate: Rate::parse(text).unwrap(),
        created_at: Time::from_micros(0),
    };
    let rates = [
        rate("EUR", "CHF", "2026-03-01", "1.05"),
        rate("EUR", "CHF", "2026-01-01", "1.03"),
        rate("EUR", "CHF", "2026-06-01", "1.07"),
        rate("EUR", "USD", "2026-01-01", "0.92"),
        rate("USD", "CHF", "2026-04-01", "1.13"),
    ];
    let table = [
        ("EUR", "CHF", "2025-12-31", None),
        ("EUR", "CHF", "2026-01-01", Some("1.03")),
        ("EUR", "CHF", "2026-02-28", Some("1.03")),
        ("EUR", "CHF", "2026-03-01", Some("1.05")),
        ("EUR", "CHF", "2026-05-31", Some("1.05")),
        ("EUR", "CHF", "2099-01-01", Some("1.07")),
        ("EUR", "USD", "2026-05-31", Some("0.92")),
        // Rates to another base are never used, nor the other way round, nor over a third currency.
        ("USD", "CHF", "2026-03-31", None),
        ("USD", "CHF", "2026-04-01", Some("1.13")),
        ("USD", "EUR", "2026-05-31", None),
        ("CHF", "EUR", "2026-05-31", None),
        ("EUR", "SEK", "2026-05-31", None),
    ];
    for (base, of, on, expected) in table {
        let found = in_force(&rates, currency(base), currency(of), day(on)).map(|rate| rate.rate.text());
        assert_eq!(found.as_deref(), expected, "{of} in {base} on {on}");
    }
}

#[test]
fn all_faults_of_a_new_rate_are_named_at_once() {
    let one = |pointer: &str, code: &'static str| (pointer.to_owned(), code);
    let table = [
        (
            json!({}),
            vec![one("/currency", "required"), one("/valid_from", "required"), one("/rate", "required")],
        ),
        (
            json!({"currency": "XXY", "valid_from": "1.1.2026", "rate": "0", "base": "EUR"}),
            vec![
                one("/currency", "unknown_currency"),
                one("/valid_from", "malformed"),
                one("/rate", "out_of_range"),
                one("/base", "unknown_member"),
            ],
        ),
        (
            json!({"currency": "chf", "valid_from": "1970-12-31", "rate": 1.05}),
            vec![one("/valid_from", "out_of_range")],
        ),
    ];
    for (sent, expected) in table {
        assert_eq!(faults(NewRate::parse(&body(sent.clone()))), expected, "{sent}");
    }
    let parsed = NewRate::parse(&body(json!({"currency": "chf", "valid_from": "2026-03-01", "rate": 1.05})));
    let expected = NewRate {
        currency: currency("CHF"),
        valid_from: day("2026-03-01"),
        rate: Rate::parse("1.05").unwrap(),
    };
    assert_eq!(parsed, Ok(expected));
    assert_eq!(expected.refuse_base(currency("EUR")), Ok(()));
    assert_eq!(faults(expected.refuse_base(currency("CHF"))), [one("/currency", "default_currency")]);
}

#[test]
fn a_patch_changes_the_day_and_the_rate_and_nothing_else() {
    let known = ExchangeRate {
        id: ExchangeRateId::from_bytes([1; 16]),
        base: currency("EUR"),
        currency: currency("CHF"),
        valid_from: day("2026-03-01"),
        rate: Rate::parse("1.05").unwrap(),
        created_at: Time::from_micros(0),
    };
    let patched = |json: Value| RatePatch::parse(&body(json)).unwrap().apply(&known);
    assert_eq!(patched(json!({})), known);
    assert_eq!(
        patched(json!({"rate": "1.06"})),
        ExchangeRate { rate: Rate::parse("1.06").unwrap(), ..known }
    );
    let moved = ExchangeRate { valid_from: day("2026-04-01"), ..known };
    assert_eq!(patched(json!({"valid_from": "2026-04-01"})), moved);
    let refused = RatePatch::parse(&body(json!({"rate": null, "valid_from": null, "currency": "USD"})));
    let expected = [
        ("/valid_from".to_owned(), "not_clearable"),
        ("/rate".to_owned(), "not_clearable"),
        ("/currency".to_owned(), "unknown_member"),
    ];
    assert_eq!(faults(refused), expected);
}
