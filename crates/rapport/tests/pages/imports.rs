//! A file of accounts is uploaded, checked, imported and undone.

use std::fs;

use rapport_testkit::{Hands, with_all_hands};
use serde_json::json;
use tempfile::TempDir;

use crate::office::Office;

const FILE: &str = "Record;Company;Stage;Plan\n\
                    crm-1;Nordlys Bank;customer;enterprise\n\
                    crm-2;Åre Lifts;prospect;\"=1+1\"\n\
                    crm-3;Broken Ltd;nowhere;basic\n";

/// As a German spreadsheet has it, with dates and numbers that can be read in two ways.
const MESSY: &str = "Kundennr.;Firma;Status;Umsatz;E-Mail;Letzter Kontakt\n\
                     K-1;Nordlys;Heiß;1.200;info@nordlys.test;03/04/2025\n\
                     K-2;Åre Lifts;Kunde;12.500;a@are.test b@are.test;05/06/2025\n\
                     K-3;Broken Ltd;Kunde;7;nobody;\n";

with_all_hands!(a_file_is_imported_and_undone, a_messy_file_asks_only_for_what_it_needs);

async fn a_file_is_imported_and_undone(hands: Hands) {
    let office = Office::open();
    office.account(json!({ "imported_id": "crm-1", "name": "Nordlys", "status": "contacted" }));
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("<b>accounts.csv");
    fs::write(&file, FILE).expect("a file");
    let browser = office.browser_with(hands).await;

    browser.go("/imports").await;
    browser.see("No imports yet").await;
    browser.attach("file", file.to_str().expect("a path")).await;
    browser.click("Upload").await;
    browser.see("<b>accounts.csv").await;
    browser.see("Sample values").await;
    for (column, field) in [("column-0", "imported_id"), ("column-1", "name"), ("column-2", "status")] {
        browser.choose(column, field).await;
    }
    browser.click("Start dry run").await;
    browser.see_news("Dry run result").await;
    browser.see("Rows with errors").await;
    assert_eq!(
        office.api("GET", "/api/accounts/?q=lifts", &json!(null))["items"],
        json!([]),
        "nothing is changed"
    );

    browser.click("Start import").await;
    browser.see_news("Import finished").await;
    browser.see("Download error file").await;
    browser.go("/accounts?q=lifts").await;
    browser.see("Åre Lifts").await;

    browser.go("/imports").await;
    browser.click("<b>accounts.csv").await;
    browser.click("Undo…").await;
    browser.click("Undo import").await;
    browser.see_news("Import undone").await;
    let kept = office.api("GET", "/api/accounts/?imported_id=crm-1", &json!(null));
    assert_eq!(
        (&kept["items"][0]["name"], &kept["items"][0]["status"]),
        (&json!("Nordlys"), &json!("contacted"))
    );
    assert_eq!(office.api("GET", "/api/accounts/?q=lifts", &json!(null))["items"], json!([]));
    browser.close();
}

async fn a_messy_file_asks_only_for_what_it_needs(hands: Hands) {
    let office = Office::open();
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("kunden.csv");
    fs::write(&file, MESSY).expect("a file");
    let browser = office.browser_at("/imports", hands).await;
    browser.attach("file", file.to_str().expect("a path")).await;
    browser.click("Upload").await;
    browser.see("can be read in two ways").await;
    browser.choose("format-3", "decimal_comma").await;
    browser.choose("format-5", "day_first").await;
    browser.click("Start dry run").await;
    browser.see_news("Dry run result").await;
    browser.see("“Heiß”").await;
    browser.see("“nobody”").await;

    browser.click("Fix Status").await;
    browser.see("Choose the stage that each word in the status column means").await;
    browser.choose("word-0", "in_negotiation").await;
    browser.click("Start dry run").await;
    browser.see_news("Dry run result").await;
    browser.click("Start import").await;
    browser.see_news("Import finished").await;
    browser.click("View 2 created accounts").await;
    browser.see("Created by the import").await;
    browser.see("Åre Lifts").await;
    let nordlys = office.api("GET", "/api/accounts/?imported_id=K-1", &json!(null))["items"][0].clone();
    assert_eq!(
        (&nordlys["status"], &nordlys["captured_value"]),
        (&json!("in_negotiation"), &json!("1200.00"))
    );
    assert_eq!(nordlys["last_contact_at"], json!("2025-04-03T00:00:00Z"));

    browser.go("/imports").await;
    browser.click("kunden.csv").await;
    browser.click("Fix E-Mail and retry").await;
    browser.see("Only the rows that failed are in this file").await;
    browser.choose("column-4", "ignore").await;
    browser.click("Start dry run").await;
    browser.see_news("Dry run result").await;
    browser.click("Start import").await;
    browser.see_news("Import finished").await;
    browser.see("View 1 created account").await;
    browser.close();
}
