//! Client activity appears on the account page while it is open.

use rapport_testkit::Hands;
use serde_json::json;

use crate::office::Office;

#[tokio::test]
async fn the_pulse_card_changes_without_a_reload() {
    let office = Office::open();
    let account =
        office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "customer" }));
    let id = account["id"].as_str().expect("an id");
    let browser = office.browser_at(&format!("/accounts/{id}"), Hands::Mouse).await;
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
    browser.close();
}

#[tokio::test]
async fn a_page_that_lost_its_stream_to_newer_ones_still_changes_and_takes_none_back() {
    let office = Office::open();
    let account =
        office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "customer" }));
    let id = account["id"].as_str().expect("an id");
    let browser = office.browser_at(&format!("/accounts/{id}"), Hands::Mouse).await;
    // Once its stream is open, the page looks again.
    let has_looked =
        "return performance.getEntriesByType('resource').some((one) => one.initiatorType === 'fetch')";
    browser.expect_script(has_looked, &json!(true)).await;
    // As many more streams as a session may have.
    let others = "window.lost = 0;
        window.others = [1, 2, 3, 4].map(() => new EventSource('/live'));
        window.others.forEach((other) => (other.onerror = () => window.lost++))";
    browser.run(others, Vec::new()).await;
    let all_open = "return window.others.every((other) => other.readyState === EventSource.OPEN)";
    browser.expect_script(all_open, &json!(true)).await;

    office.ingest(json!([{ "imported_id": "crm-1", "kind": "feature_used", "feature": "app.export" }]));
    browser.see("app.export").await;
    assert_eq!(browser.run("return window.lost", Vec::new()).await, json!(0), "the newer ones keep theirs");
    browser.close();
}
