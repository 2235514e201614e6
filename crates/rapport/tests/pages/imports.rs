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

with_all_hands!(a_file_is_imported_and_undone);

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
