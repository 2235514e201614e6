//! The page of exchange rates.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Tenant, column, on_both_engines};
use crate::person::Person;

on_both_engines! {
    rates_are_added_changed_deleted_and_restored,
    a_refused_rate_stays_in_its_fields,
    currencies_without_a_rate_are_named,
    rates_to_a_former_default_currency_are_listed_apart,
    a_long_list_has_pages,
}

const PATH: &str = "/settings/currencies";
const LIST: &str = "/api/exchange-rates/";

async fn rates(acme: &Tenant) -> Vec<Value> {
    acme.all_pages(LIST, 200).await
}

fn fields<'a>(currency: &'a str, day: &'a str, rate: &'a str) -> [(&'a str, &'a str); 3] {
    [("currency", currency), ("valid_from", day), ("rate", rate)]
}

async fn rates_are_added_changed_deleted_and_restored(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let page =
        ana.see(PATH).await.expect(200).says("No rates to USD yet").says("aria-current=\"page\">Currencies");
    page.says("value=\"2026-01-05\"").says("What one unit is worth in USD.");
    let to = "/settings/currencies?base=USD";
    ana.send(PATH, &fields(" chf ", "2026-01-01", "1.10")).await.leads_to(to);
    ana.send(PATH, &fields("CHF", "2025-12-01", "1.05")).await.leads_to(to);
    ana.send(PATH, &fields("CHF", "2026-02-01", "1.2")).await.leads_to(to);
    let page = ana.see(PATH).await.expect(200);
    for (day, rate, state) in [
        ("1 Feb 2026", "1.2", "<span class=\"badge\">upcoming</span>"),
        ("1 Jan 2026", "1.1", "<span class=\"badge good\">in use</span>"),
        ("1 Dec 2025", "1.05", "<span class=\"faint\">past</span>"),
    ] {
        let row = page.0.text().split("<tr>").find(|row| row.contains(day)).expect("a row");
        assert!(
            row.contains(&format!("1\u{a0}CHF = {rate}\u{a0}USD")) && row.contains(state),
            "{day}: {row}"
        );
    }
    let latest = rates(&acme).await.remove(0);
    let one = format!("{PATH}/{}", latest["id"].as_str().expect("an id"));
    ana.see(&one).await.expect(200).says("value=\"1.2\"").says("What 1 CHF is worth in USD.");
    ana.send(&one, &[("valid_from", "2026-03-01"), ("rate", "1.25")]).await.leads_to(to);
    let changed = rates(&acme).await;
    assert_eq!(column(&changed, "rate"), ["1.25", "1.1", "1.05"]);
    let deleted = ana.send(&format!("{one}/delete"), &[]).await;
    deleted.leads_to(to);
    assert_eq!(column(&rates(&acme).await, "rate"), ["1.1", "1.05"]);
    let flash: Value = serde_json::from_str(&deleted.flash()).expect("a flash");
    let undo = flash["undo"]["fields"].as_array().expect("fields").iter();
    let undo: Vec<(&str, &str)> =
        undo.map(|pair| (pair[0].as_str().expect("a name"), pair[1].as_str().expect("a value"))).collect();
    ana.send(flash["undo"]["action"].as_str().expect("an address"), &undo).await.leads_to(to);
    assert_eq!(column(&rates(&acme).await, "valid_from"), ["2026-03-01", "2026-01-01", "2025-12-01"]);
    // What is gone has no page.
    ana.see(&one).await.expect(404);
}

async fn a_refused_rate_stays_in_its_fields(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let page = ana.send(PATH, &fields("XXY", "2026-13-01", "1,10")).await.expect(422);
    let page = page.says("value=\"XXY\"").says("value=\"1,10\"").says("Must be an ISO 4217 currency code");
    page.says("Must be a date in the form").says("Must be a decimal number such as");
    ana.send(PATH, &fields("USD", "2026-01-01", "1")).await.expect(422).says("Is the default currency");
    assert_eq!(rates(&acme).await.len(), 0);
    ana.send(PATH, &fields("CHF", "2026-01-01", "1.1")).await.leads_to("/settings/currencies?base=USD");
    ana.send(PATH, &fields("CHF", "2026-02-01", "1.2")).await.leads_to("/settings/currencies?base=USD");
    let taken = "This currency already has a rate that is valid from this day.";
    ana.send(PATH, &fields("CHF", "2026-01-01", "2"))
        .await
        .expect(422)
        .says(taken)
        .says("id=\"valid_from-note\"");
    let latest = rates(&acme).await.remove(0);
    let one = format!("{PATH}/{}", latest["id"].as_str().expect("an id"));
    ana.send(&one, &[("valid_from", "2026-01-01"), ("rate", "3")]).await.expect(422).says(taken);
    ana.send(&one, &[("valid_from", ""), ("rate", "0")]).await.expect(422).says("Must be more than zero");
    assert_eq!(column(&rates(&acme).await, "rate"), ["1.2", "1.1"]);
}

async fn currencies_without_a_rate_are_named(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    for (id, currency) in [("1", "SEK"), ("2", "CHF"), ("3", "USD"), ("4", "CHF")] {
        let value = json!({"imported_id": id, "captured_value": "10", "captured_value_currency": currency});
        acme.account(value).await;
    }
    let link = |code: &str| format!("href=\"/settings/currencies?add={code}#add\">Add a rate for {code}</a>");
    let page = ana.see(PATH).await.expect(200).says(&link("CHF")).says(&link("SEK"));
    page.says_not(&link("USD"));
    ana.see("/settings/currencies?add=CHF")
        .await
        .says("id=\"currency\" name=\"currency\" type=\"text\" value=\"CHF\"");
    ana.send(PATH, &fields("CHF", "2026-01-01", "1.1")).await.leads_to("/settings/currencies?base=USD");
    ana.see(PATH).await.says(&link("SEK")).says_not(&link("CHF"));
    ana.send(PATH, &fields("SEK", "2026-01-01", "0.1")).await.leads_to("/settings/currencies?base=USD");
    ana.see(PATH).await.says_not("currencies without a rate");
}

async fn rates_to_a_former_default_currency_are_listed_apart(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    ana.send(PATH, &fields("CHF", "2026-01-01", "1.1")).await.leads_to("/settings/currencies?base=USD");
    acme.patch("/api/settings/").json(&json!({"default_currency": "EUR"})).send().await.expect(200);
    let page = ana.see(PATH).await.expect(200).says("No rates to EUR yet");
    page.says("<a href=\"/settings/currencies?base=USD\">rates to USD</a>");
    let page = ana.see("/settings/currencies?base=USD").await.expect(200);
    page.says("They aren’t used, because your default currency is").says("1\u{a0}CHF = 1.1\u{a0}USD");
}

async fn a_long_list_has_pages(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    for day in 1..=60 {
        let day = jiff::civil::Date::constant(2026, 1, 1).saturating_add(jiff::Span::new().days(day));
        let body = json!({"currency": "CHF", "valid_from": day.to_string(), "rate": "1.1"});
        acme.post(LIST).json(&body).send().await.expect(201);
    }
    let count = |text: &str| text.matches("1\u{a0}CHF = ").count();
    let first = ana.see(PATH).await.expect(200);
    assert_eq!(count(first.0.text()), 50);
    let next = "/settings/currencies?base=USD&#38;after=CHF&#38;before=2026-01-12";
    first.says(&format!("href=\"{next}\""));
    let second = ana.see(&next.replace("&#38;", "&")).await.expect(200);
    assert_eq!(count(second.0.text()), 10);
    second.says_not("rel=\"next\"");
}
