//! What clients do in the product shows on the account while somebody looks at it.

use serde_json::json;

use crate::office::Office;

#[tokio::test]
async fn the_pulse_card_changes_without_a_reload() {
    let office = Office::open();
    let account =
        office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "customer" }));
    let id = account["id"].as_str().expect("an id");
    let browser = office.browser().await;
    browser.go(&format!("/accounts/{id}")).await;
    browser.run("window.untouched = true", Vec::new()).await;
    browser.see_not("app.export").await;

    let used = json!({ "imported_id": "crm-1", "kind": "feature_used", "feature": "app.export" });
    office.ingest(json!([used, used, used]));
    browser.see("app.export").await;
    browser.see("just now").await;
    assert_eq!(
        browser.run("return window.untouched", Vec::new()).await,
        json!(true),
        "it was not loaded again"
    );
    browser.close().await;
}
