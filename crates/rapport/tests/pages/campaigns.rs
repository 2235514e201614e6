//! A campaign is created, counted, changed, viewed, exported and deleted.

use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::{Value, json};

use crate::accounts::download;
use crate::office::Office;

with_all_hands!(a_campaign_knows_who_is_in_and_why_others_are_not);

/// One account in each of these stages, named after it; all but one on the same plan.
fn fill(office: &Office) {
    for (number, status) in
        ["prospect", "lost", "contacted", "customer", "in_trial", "do_not_contact"].iter().enumerate()
    {
        let plan = if *status == "contacted" { "free" } else { "pro" };
        office.account(json!({
            "imported_id": format!("crm-{number}"), "name": format!("The {status}"), "status": status,
            "custom_fields": { "plan": plan },
        }));
    }
}

fn campaigns(office: &Office) -> Value {
    office.api("GET", "/api/campaigns/", &Value::Null)["items"].clone()
}

/// Waits until the form shows this count. Without scripts a button counts.
async fn counts(browser: &Browser, hands: Hands, text: &str) {
    if hands == Hands::NoScripts {
        browser.click("Count").await;
    }
    browser.see_in("#counts", text).await;
}

async fn a_campaign_knows_who_is_in_and_why_others_are_not(hands: Hands) {
    let office = Office::open();
    fill(&office);
    let browser = office.browser_with(hands).await;
    browser.click("Campaigns").await;
    browser.see("No campaigns yet").await;
    browser.click("New campaign").await;
    create(&browser, hands).await;
    let made = campaigns(&office);
    assert_eq!(made[0]["name"], json!("Spring fair"));
    assert_eq!(made[0]["filters"], json!({ "fields": { "plan": "pro" } }));

    // The prospect and the lost account are members. A rule excludes each of the others.
    browser.see("The prospect").await;
    browser.see("The lost").await;
    for out in ["The customer", "The in_trial", "The do_not_contact", "The contacted"] {
        browser.see_not(out).await;
    }
    browser.see("Never in any campaign").await;
    browser.see("Treated as customers unless trials are included").await;
    edit(&browser, hands).await;
    assert_eq!(campaigns(&office)[0]["include_trials"], json!(true));
    browser.see("The in_trial").await;

    let mut lines = download(&office, &browser, "a[download]").await.split_off(1);
    lines.sort();
    let names: Vec<&str> = lines.iter().filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for name in ["The prospect", "The lost", "The in_trial"] {
        assert!(names.contains(&name), "{name}: {lines:?}");
    }
    who_is_left_out(&browser).await;
    browser.click("Campaigns").await;
    browser.click("Spring and summer").await;
    browser.click("Delete").await;
    browser.click("Delete campaign").await;
    browser.see("Campaign deleted.").await;
    browser.see("No campaigns yet").await;
    assert_eq!(campaigns(&office), json!([]));
    browser.close();
}

async fn create(browser: &Browser, hands: Hands) {
    browser.click_css("input[name=goal][value=announcement]").await;
    counts(browser, hands, "5 accounts included").await;
    browser.click_css("input[name=goal][value=acquisition]").await;
    counts(browser, hands, "3 accounts included").await;
    browser.fill("field", "plan").await;
    browser.fill("value", "pro").await;
    counts(browser, hands, "2 accounts included").await;
    browser.click("Save").await;
    browser.see("Is required.").await;
    browser.expect_value("field", "plan").await;
    browser.expect_value("value", "pro").await;
    browser.expect_count("input[value=acquisition]:checked", 1).await;
    browser.fill("name", "Spring fair").await;
    browser.click("Save").await;
    browser.see("Spring fair saved.").await;
}

async fn edit(browser: &Browser, hands: Hands) {
    browser.click("Edit e").await;
    browser.expect_value("name", "Spring fair").await;
    browser.expect_value("value", "pro").await;
    browser.click("Include accounts in trial even if the goal excludes customers").await;
    counts(browser, hands, "3 accounts included").await;
    browser.fill("name", "Spring and summer").await;
    browser.click("Save").await;
    browser.see("Spring and summer saved.").await;
}

/// The number beside a rule links to the accounts it excludes.
async fn who_is_left_out(browser: &Browser) {
    browser.click_css("#counts a[href*='status=do_not_contact']").await;
    browser.see("The do_not_contact").await;
    browser.see("1 account").await;
    browser.expect_count("tr[data-href]", 1).await;
}
