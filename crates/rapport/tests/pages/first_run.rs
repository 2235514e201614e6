//! From an empty directory to a company with its owner and its first account.

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::json;

use crate::program::{Place, Service};

with_all_hands!(
    the_printed_link_makes_the_company_and_its_owner_once,
    what_was_typed_stays_and_the_fault_stands_beside_its_field,
);

async fn the_printed_link_makes_the_company_and_its_owner_once(hands: Hands) {
    let place = Place::sqlite();
    let mut service = place.serve();
    let link = service.line_that_contains("/setup/");
    let browser = open(&service, hands).await;

    browser.go("/").await;
    browser.see("The server printed a setup link").await;
    browser.go(&format!("/setup/{}", "x".repeat(24))).await;
    browser.see("Page not found").await;

    browser.go(&link).await;
    browser.fill("company", "Nordlys & Söhne").await;
    if hands != Hands::NoScripts {
        the_project_follows(&browser).await;
    }
    fill_in(&browser, "nordlys").await;
    browser.click("Create company").await;
    browser.see("shown only once").await;
    browser.see_in("#token", "rap_").await;
    browser.see_in("#key", "rik_").await;
    browser.click("Go to the dashboard").await;
    browser.see("Nordlys & Söhne").await;
    browser.see("Ida Berg").await;
    browser.see("Three steps to get started").await;
    browser.see("0 of 3 done").await;

    make_the_first_account(&browser, hands).await;
    browser.go(&link).await;
    browser.see("Page not found").await;
    browser.close();
}

/// A new company, and its owner on the dashboard.
pub async fn new_company(service: &mut Service, setup: Setup) -> Browser {
    let link = service.line_that_contains("/setup/");
    let browser = Browser::open_as(&format!("http://{}", service.address), setup).await;
    browser.go(&link).await;
    browser.fill("company", "Nordlys").await;
    fill_in(&browser, "nordlys").await;
    browser.click("Create company").await;
    browser.click("Go to the dashboard").await;
    browser
}

async fn open(service: &Service, hands: Hands) -> Browser {
    let setup = Setup { hands, ..Setup::default() };
    Browser::open_as(&format!("http://{}", service.address), setup).await
}

/// The script derives the project name from the company's name.
async fn the_project_follows(browser: &Browser) {
    let project = "return document.getElementById('project').value";
    browser.expect_script(project, &json!("nordlys-sohne")).await;
}

/// Fills in everything except the company's name.
async fn fill_in(browser: &Browser, project: &str) {
    browser.fill("project", project).await;
    browser.fill("name", "Ida Berg").await;
    browser.fill("email", "ida@nordlys.test").await;
    browser.fill("password", "a long enough one").await;
}

async fn make_the_first_account(browser: &Browser, hands: Hands) {
    browser.click("Accounts").await;
    browser.see("No accounts yet").await;
    if hands == Hands::Keyboard {
        browser.press("n").await;
    } else {
        browser.click("New account").await;
    }
    browser.fill("name", "Harbour Freight").await;
    browser.fill("captured_value", "a lot").await;
    browser.click("Create").await;
    browser.see("Must be a decimal amount").await;
    browser.fill("captured_value", "1200.50").await;
    browser.click("Create").await;
    browser.see("1,200.50").await;
    browser.see("Harbour Freight").await;
    browser.click("Dashboard").await;
    browser.see("Pipeline by stage").await;
    // The first of the steps is ticked off. They can be hidden before the others are taken.
    browser.see("1 of 3 done").await;
    browser.expect_count(".guide .number.done", 1).await;
    browser.click("Hide steps").await;
    browser.see("Pipeline by stage").await;
    browser.see_not("1 of 3 done").await;
}

async fn what_was_typed_stays_and_the_fault_stands_beside_its_field(hands: Hands) {
    let place = Place::sqlite();
    let mut service = place.serve();
    let link = service.line_that_contains("/setup/");
    let browser = open(&service, hands).await;
    browser.go(&link).await;
    browser.fill("company", "Nordlys").await;
    fill_in(&browser, "Not A Slug!").await;
    browser.click("Create company").await;
    browser.expect_count("#project[aria-invalid]", 1).await;
    // What was typed stays.
    browser.expect_count("#name[value='Ida Berg']", 1).await;
    // Except for the password.
    browser.expect_count("#password[value='']", 1).await;
    if hands != Hands::NoScripts {
        assert_eq!(browser.axe().await, [""; 0]);
    }

    browser.fill("project", "nordlys").await;
    browser.fill("password", "Nordlys 2026!").await;
    browser.click("Create company").await;
    browser.see("Must not consist of your email address, your name or your company's name.").await;
    browser.expect_count("#password[aria-invalid][value='']", 1).await;
    browser.expect_count("#name[value='Ida Berg']", 1).await;
    browser.fill("password", "a long enough one").await;
    browser.click("Create company").await;
    browser.see("shown only once").await;
    browser.close();
}
