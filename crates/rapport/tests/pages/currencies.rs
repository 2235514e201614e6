//! Exchange rates are added, corrected and deleted, and totals follow.

use rapport_testkit::browser::Setup;
use rapport_testkit::{Hands, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;

with_all_hands!(
    a_rate_is_added_corrected_deleted_and_restored,
    totals_show_the_converted_sum_and_its_parts,
    a_refused_rate_keeps_what_was_typed,
);

const ESCAPE: &str = "\u{e00c}";
const HEAD: &str = "#head-customer";

fn worth(office: &Office, name: &str, amount: &str, currency: &str) {
    office.account(json!({
        "imported_id": name, "name": name, "status": "customer", "captured_value": amount,
        "captured_value_currency": currency,
    }));
}

fn rates(office: &Office) -> Vec<String> {
    let found = office.api("GET", "/api/exchange-rates/", &Value::Null);
    let text = |rate: &Value, member: &str| rate[member].as_str().expect("a text").to_owned();
    let rates = found["items"].as_array().expect("items").iter();
    rates.map(|rate| ["currency", "rate"].map(|member| text(rate, member)).join(" ")).collect()
}

fn add(office: &Office, currency: &str, rate: &str) {
    let body = json!({ "currency": currency, "valid_from": "2020-01-01", "rate": rate });
    office.api("POST", "/api/exchange-rates/", &body);
}

async fn a_rate_is_added_corrected_deleted_and_restored(hands: Hands) {
    let office = Office::open();
    worth(&office, "Nordlys Bank", "1000", "CHF");
    let browser = office.browser_at("/settings/currencies", hands).await;
    browser.see("No rates to USD yet").await;
    browser.click("Add a rate for CHF").await;
    browser.expect_value("currency", "CHF").await;
    // It is valid from today on, unless another day is chosen.
    browser.fill("rate", "1.10").await;
    browser.click("Add rate").await;
    browser.see("Rate added: 1").await;
    browser.see_in("#rates", "in use").await;
    browser.see_not("Accounts have values in currencies without a rate").await;
    assert_eq!(rates(&office), ["CHF 1.1"]);

    browser.click_css("[aria-label^='Change CHF from ']").await;
    browser.expect_value("rate", "1.1").await;
    browser.fill("rate", "1.2").await;
    browser.click("Save").await;
    browser.see("Rate saved: 1").await;
    assert_eq!(rates(&office), ["CHF 1.2"]);

    browser.click_css("[aria-label^='Delete CHF from ']").await;
    browser.see("Rate deleted").await;
    browser.see("Add a rate for CHF").await;
    assert_eq!(rates(&office), [""; 0]);
    browser.click("Undo").await;
    browser.see("Rate added").await;
    browser.see_in("#rates", "1 CHF = 1.2 USD").await;
    assert_eq!(rates(&office), ["CHF 1.2"]);

    browser.click("Audit log").await;
    for part in
        ["Added an exchange rate", "Changed an exchange rate", "rate: 1.1 → 1.2", "Deleted an exchange rate"]
    {
        browser.see_in("#audit", part).await;
    }
    browser.close();
}

async fn totals_show_the_converted_sum_and_its_parts(hands: Hands) {
    let office = Office::open();
    for (name, currency) in [("One", "USD"), ("Two", "CHF"), ("Three", "EUR")] {
        worth(&office, name, "1000", currency);
    }
    add(&office, "CHF", "1.1");
    let browser = office.browser_with(hands).await;
    browser.click("Pipeline").await;
    browser.see_in(HEAD, "$2,100.00 + €1,000.00").await;
    browser.see_not_in(HEAD, "CHF").await;
    if hands == Hands::Mouse {
        browser.hover(&format!("{HEAD} button.worth")).await;
    } else {
        browser.click_css(&format!("{HEAD} button.worth")).await;
    }
    for part in
        ["$1,000.00", "CHF 1,000.00 = $1,100.00", "1 CHF = 1.1 USD since 1 Jan 2020", "no exchange rate"]
    {
        browser.see_in(HEAD, part).await;
    }
    if hands == Hands::Keyboard {
        browser.press(ESCAPE).await;
        browser.see_not_in(HEAD, "CHF").await;
    }

    // With a rate for the last currency there is one sum, here and on the dashboard.
    add(&office, "EUR", "1.25");
    browser.click("Dashboard").await;
    browser.see_in("table.stages", "$3,350.00").await;
    browser.see_not_in("table.stages", "+").await;
    browser.click_css("table.stages button.worth").await;
    browser.see_in("table.stages", "€1,000.00 = $1,250.00").await;
    browser.close();
}

async fn a_refused_rate_keeps_what_was_typed(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/settings/currencies", hands).await;
    browser.fill("currency", "XXY").await;
    browser.fill("rate", "1,10").await;
    browser.click("Add rate").await;
    browser.see("Must be an ISO 4217 currency code").await;
    browser.see("Must be a decimal number such as \"0.92\"").await;
    browser.expect_count("[name=currency][value=XXY][aria-invalid]", 1).await;
    browser.expect_count("[name=rate][value='1,10'][aria-invalid]", 1).await;
    browser.fill("currency", "CHF").await;
    browser.fill("rate", "1.10").await;
    browser.click("Add rate").await;
    browser.see("Rate added").await;
    assert_eq!(rates(&office).len(), 1);
    browser.close();
}

/// The parts stay on the screen, wherever their total is.
#[tokio::test]
async fn the_parts_of_a_total_fit_every_screen_and_axe_finds_nothing_in_them() {
    const OUTSIDE: &str = "const box = document.querySelector(arguments[0]).getBoundingClientRect();
        return [box.width > 0, box.left >= 0, box.right <= innerWidth, box.top >= 0,
                document.documentElement.scrollWidth <= innerWidth]";
    let office = Office::open();
    for currency in ["USD", "CHF", "EUR", "SEK", "JPY"] {
        worth(&office, currency, "99999999999", currency);
    }
    for currency in ["CHF", "EUR"] {
        add(&office, currency, "1.0123456789");
    }
    let phone = |width, dark| Setup { width, dark, ..Setup::default() };
    for setup in [phone(320, false), phone(390, true), Setup::default()] {
        let browser = office.browser_as(setup).await;
        for (page, total) in [("/pipeline", HEAD), ("/", "table.stages")] {
            browser.go(page).await;
            // The bar of a phone may cover it.
            let show = "document.querySelector(arguments[0]).scrollIntoView({block: 'center'})";
            browser.run(show, vec![json!(format!("{total} button.worth"))]).await;
            browser.click_css(&format!("{total} button.worth")).await;
            browser.see_in(total, "no exchange rate").await;
            let tip = json!(format!("{total} .tip:hover, {total} button.worth:focus + .tip"));
            assert_eq!(browser.run(OUTSIDE, vec![tip]).await, json!(vec![true; 5]), "{page}");
            assert_eq!(browser.axe().await, Vec::<String>::new(), "{page}");
        }
        browser.close();
    }
}
