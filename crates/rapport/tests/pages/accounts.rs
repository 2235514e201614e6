//! The list of accounts: create, search, filter, sort, save a view, export, and bulk changes.

use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::{Value, json};

use crate::office::Office;

with_all_hands!(
    an_account_is_made_by_hand,
    a_search_and_filters_are_kept_as_a_view,
    columns_are_chosen_and_exported,
    columns_sort_both_ways,
    accounts_are_moved_together_and_back,
    accounts_are_changed_and_deleted_together,
    a_fault_in_the_address_is_named_and_left,
    a_domain_that_cannot_be_looked_up_stays_typed,
);

/// Three accounts: two customers, one of them and a lost one on the same plan.
fn three(office: &Office) {
    for (number, name, status, plan) in [
        (1, "Nordlys Bank", "customer", "pro"),
        (2, "Fjord Foods", "customer", "free"),
        (3, "Fjell Fish", "lost", "pro"),
    ] {
        office.account(json!({
            "imported_id": format!("crm-{number}"), "name": name, "status": status, "captured_value": "1200",
            "custom_fields": { "plan": plan },
        }));
    }
}

/// The accounts that a query finds in the API, as names with their status.
fn found(office: &Office, query: &str) -> Vec<(String, String)> {
    let answer = office.api("GET", &format!("/api/accounts/?{query}"), &Value::Null);
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    let items = answer["items"].as_array().expect("items").iter();
    items.map(|account| (word(&account["name"]), word(&account["status"]))).collect()
}

/// The lines of the file behind a link, for the person who is logged in.
pub async fn download(office: &Office, browser: &Browser, link: &str) -> Vec<String> {
    let href = browser.attribute_of(link, "href").await;
    let (status, body) = office.service.request("GET", &href, &[("Cookie", &browser.cookies().await)], "");
    assert_eq!(status, 200, "{href}: {body}");
    // Skip the lines with the chunk lengths.
    body.lines().filter(|line| line.contains(',')).map(str::to_owned).collect()
}

async fn an_account_is_made_by_hand(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click("Accounts").await;
    browser.see("No accounts yet").await;
    browser.click("New account").await;
    browser.fill("name", "Nordlys Bank").await;
    browser.choose("status", "in_trial").await;
    browser.fill("imported_id", "crm-1").await;
    browser.fill("captured_value", "1.200,50").await;
    browser.fill("key1", "plan").await;
    browser.fill("value1", "pro").await;
    browser.click("Create").await;
    browser.see("Must be a decimal amount").await;
    for (field, typed) in [
        ("name", "Nordlys Bank"),
        ("status", "in_trial"),
        ("imported_id", "crm-1"),
        ("captured_value", "1.200,50"),
        ("key1", "plan"),
        ("value1", "pro"),
    ] {
        browser.expect_value(field, typed).await;
    }
    assert_eq!(found(&office, ""), [], "nothing is made");

    browser.fill("captured_value", "1200.50").await;
    browser.click("Create").await;
    browser.see("“Nordlys Bank” created.").await;
    let made = &office.api("GET", "/api/accounts/?imported_id=crm-1", &Value::Null)["items"][0];
    assert_eq!(
        (&made["status"], &made["captured_value"], &made["custom_fields"]),
        (&json!("in_trial"), &json!("1200.50"), &json!({ "plan": "pro" }))
    );
    browser.click("Accounts").await;
    browser.see("1 account").await;
    browser.close();
}

async fn a_search_and_filters_are_kept_as_a_view(hands: Hands) {
    let office = Office::open();
    three(&office);
    let browser = office.browser_with(hands).await;
    browser.click("Accounts").await;
    browser.see("3 accounts").await;
    browser.fill("q", "fj").await;
    browser.click("Search").await;
    browser.see_not("Nordlys Bank").await;
    browser.see("Fjell Fish").await;
    browser.click("Remove filter “fj” ✕").await;
    browser.see("3 accounts").await;

    browser.click("Filter").await;
    browser.click("Customer").await;
    browser.fill("field_key", "plan").await;
    browser.fill("field_value", "pro").await;
    browser.click("Apply").await;
    browser.see("plan is “pro”").await;
    browser.see("1 account").await;
    browser.see("Nordlys Bank").await;
    browser.see_not("Fjord Foods").await;
    let listed = found(&office, "status=customer&field.plan=pro").len();
    browser.expect_count("tr[data-href]", listed).await;

    browser.click("Save view").await;
    browser.fill("name", "Paying pros").await;
    browser.click("Save").await;
    browser.see("View “Paying pros” saved for everyone.").await;
    browser.click("All accounts").await;
    browser.see("3 accounts").await;
    browser.click("Paying pros").await;
    browser.see("1 account").await;
    rename_and_delete_the_view(&browser).await;
    browser.close();
}

async fn rename_and_delete_the_view(browser: &Browser) {
    browser.click("Edit view").await;
    browser.expect_value("name", "Paying pros").await;
    browser.fill("name", "Pros").await;
    browser.click("Rename").await;
    browser.see("View renamed.").await;
    browser.see_not("Paying pros").await;
    browser.click("All accounts").await;
    browser.see("3 accounts").await;
    browser.click("Pros").await;
    browser.see("plan is “pro”").await;
    browser.click("Edit view").await;
    browser.click("Delete view").await;
    browser.see("View “Pros” deleted.").await;
    browser.expect_text("nav[aria-label=Views]", "All accounts").await;
    browser.click("Undo").await;
    browser.see("View “Pros” saved for everyone.").await;
    browser.see("plan is “pro”").await;
}

async fn columns_are_chosen_and_exported(hands: Hands) {
    let office = Office::open();
    three(&office);
    let browser = office.browser_at("/accounts?status=customer", hands).await;
    browser.click("Columns").await;
    for label in ["Value", "Channel", "Last seen", "Last contact", "Created", "plan"] {
        browser.click(label).await;
    }
    browser.click("Apply").await;
    browser.expect_text("thead", "Name Status plan").await;
    browser.see("2 accounts").await;
    let lines = download(&office, &browser, "a[download]").await;
    assert!(lines[0].ends_with("name,imported_id,status,custom_fields.plan"), "{lines:?}");
    assert_eq!(lines[1..], ["Fjord Foods,crm-2,customer,free", "Nordlys Bank,crm-1,customer,pro"]);
    let names: Vec<String> = found(&office, "status=customer").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Fjord Foods", "Nordlys Bank"], "as the API has them");
    browser.close();
}

async fn columns_sort_both_ways(hands: Hands) {
    let office = Office::open();
    three(&office);
    let small = json!({ "imported_id": "crm-2", "captured_value": "300" });
    office.account(small);
    let browser = office.browser_at("/accounts?columns=value", hands).await;
    let order = |names: [&str; 3]| names.map(str::to_owned).to_vec();
    browser.click("Value").await;
    browser.see("Value ↓").await;
    assert_eq!(names(&browser).await, order(["Fjell Fish", "Nordlys Bank", "Fjord Foods"]));
    browser.click("Value ↓").await;
    browser.see("Value ↑").await;
    assert_eq!(names(&browser).await, order(["Fjord Foods", "Nordlys Bank", "Fjell Fish"]));
    browser.click("Name").await;
    browser.see("Name ↑").await;
    assert_eq!(names(&browser).await, order(["Fjell Fish", "Fjord Foods", "Nordlys Bank"]));
    browser.close();
}

/// The names on the page, in order.
async fn names(browser: &Browser) -> Vec<String> {
    let mut names = Vec::new();
    for row in 1..=browser.count("tr[data-href]").await {
        names.push(browser.text_of(&format!("tbody tr:nth-child({row}) td.wrap a")).await);
    }
    names
}

/// Ticks these accounts.
async fn pick(browser: &Browser, names: &[&str]) {
    for name in names {
        browser.click_css(&format!("input[aria-label='Select {name}']")).await;
    }
}

async fn accounts_are_moved_together_and_back(hands: Hands) {
    let office = Office::open();
    three(&office);
    let browser = office.browser_with(hands).await;
    browser.click("Accounts").await;
    pick(&browser, &["Nordlys Bank", "Fjell Fish"]).await;
    if hands != Hands::NoScripts {
        browser.see("2 selected").await;
    }
    browser.click("Move…").await;
    browser.choose("status", "lost").await;
    browser.fill("note", "Met at the fair").await;
    browser.click("Preview move").await;
    browser.see("1 account will change.").await;
    browser.see("1 account won’t, because nothing is different.").await;
    browser.click("Cancel").await;
    browser.see("3 accounts").await;
    assert_eq!(found(&office, "status=lost").len(), 1, "a preview changes nothing");

    pick(&browser, &["Nordlys Bank", "Fjell Fish"]).await;
    browser.click("Move…").await;
    browser.choose("status", "contacted").await;
    browser.fill("note", "Met at the fair").await;
    browser.click("Preview move").await;
    browser.click("Move 2 accounts").await;
    browser.see("2 accounts moved to Contacted.").await;
    let mut moved = found(&office, "status=contacted");
    moved.sort();
    let contacted = |name: &str| (name.to_owned(), "contacted".to_owned());
    assert_eq!(moved, [contacted("Fjell Fish"), contacted("Nordlys Bank")]);
    browser.click("Undo").await;
    browser.see("2 accounts restored.").await;
    let stages = |name: &str, status: &str| (name.to_owned(), status.to_owned());
    let before =
        [stages("Fjell Fish", "lost"), stages("Fjord Foods", "customer"), stages("Nordlys Bank", "customer")];
    assert_eq!(found(&office, ""), before);

    // All accounts of the page at once.
    browser.click_css("input[aria-label='Select all on this page']").await;
    browser.click("Move…").await;
    browser.choose("status", "prospect").await;
    browser.click("Preview move").await;
    browser.click("Move 3 accounts").await;
    browser.see("3 accounts moved to Prospect.").await;
    assert_eq!(found(&office, "status=prospect").len(), 3);
    browser.close();
}

async fn accounts_are_changed_and_deleted_together(hands: Hands) {
    let office = Office::open();
    three(&office);
    let browser = office.browser_with(hands).await;
    browser.click("Accounts").await;
    pick(&browser, &["Nordlys Bank", "Fjord Foods"]).await;
    browser.click("Custom field…").await;
    browser.fill("value", "max").await;
    browser.click("Preview field").await;
    browser.see("Key is required.").await;
    browser.expect_value("value", "max").await;
    browser.fill("key", "plan").await;
    browser.click("Preview field").await;
    browser.see("2 accounts will change.").await;
    browser.click("Change 2 accounts").await;
    browser.see("2 accounts changed.").await;
    assert_eq!(found(&office, "field.plan=max").len(), 2);
    // The undo keeps what somebody has changed since.
    office.account(json!({ "imported_id": "crm-1", "custom_fields": { "plan": "team" } }));
    browser.click("Undo").await;
    browser.see("1 account restored. Not restored because changed since: 1 account.").await;
    assert_eq!((found(&office, "field.plan=free").len(), found(&office, "field.plan=team").len()), (1, 1));

    pick(&browser, &["Fjord Foods"]).await;
    browser.click("Snooze…").await;
    browser.fill("snoozed_until", "2031-01-31").await;
    browser.click("Preview snooze").await;
    browser.see("not snoozed").await;
    browser.click("Change 1 account").await;
    browser.see("1 account changed.").await;
    let snoozed = &office.api("GET", "/api/accounts/?imported_id=crm-2", &Value::Null)["items"][0];
    assert_eq!(snoozed["snoozed_until"], json!("2031-01-31"));

    pick(&browser, &["Fjord Foods", "Fjell Fish"]).await;
    browser.click("Delete…").await;
    browser.see("2 accounts will be deleted.").await;
    browser.see("You can’t undo this.").await;
    browser.click("Yes, delete them").await;
    browser.click("Delete 2 accounts").await;
    browser.see("2 accounts deleted.").await;
    assert_eq!(found(&office, "").len(), 1);
    browser.close();
}

const ROW: &str = "const cell = document.querySelector('tr[data-href] td.muted'); ";

#[tokio::test]
async fn a_click_anywhere_in_a_row_opens_it() {
    let office = Office::open();
    three(&office);
    let browser = office.browser_with(Hands::Mouse).await;
    browser.go("/accounts").await;
    let first = browser.attribute_of("tr[data-href]", "data-href").await;
    // A box keeps its meaning, and so does the space around it.
    browser.click_css("tr[data-href] td.pick input").await;
    browser.see("1 selected").await;
    // Text that is being selected stays.
    let selected = "getSelection().selectAllChildren(cell); cell.click(); getSelection().empty(); return location.pathname";
    browser.expect_script(&format!("{ROW}{selected}"), &json!("/accounts")).await;
    // With Ctrl or the middle button it is a new tab.
    let tabs = "const opened = []; window.open = (href) => opened.push(href); \
        cell.dispatchEvent(new MouseEvent('click', { bubbles: true, ctrlKey: true })); \
        cell.dispatchEvent(new MouseEvent('auxclick', { bubbles: true, button: 1 })); return opened";
    browser.expect_script(&format!("{ROW}{tabs}"), &json!([first, first])).await;
    browser.click_css("tr[data-href] td.muted").await;
    browser.arrive(&first).await;
    browser.close();
}

async fn a_fault_in_the_address_is_named_and_left(hands: Hands) {
    let office = Office::open();
    three(&office);
    let browser = office.browser_at("/accounts?status=nonsense&status=lost&sort=name", hands).await;
    browser.see("Status: Must be one of").await;
    browser.see("Nothing to show").await;
    // The invalid filter is removed and the other one stays.
    browser.click("Remove filter nonsense ✕").await;
    browser.see("1 account").await;
    browser.see("Fjell Fish").await;
    browser.go("/accounts?cursor=nonsense").await;
    browser.see("This link doesn’t lead to a page of this list.").await;
    browser.click("First page").await;
    browser.see("3 accounts").await;
    browser.close();
}

async fn a_domain_that_cannot_be_looked_up_stays_typed(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click("Accounts").await;
    browser.click("Look up a domain").await;
    browser.fill("domain", "localhost").await;
    browser.click("Look up").await;
    browser.see("Must be a domain such as acme.com").await;
    browser.expect_value("domain", "localhost").await;
    browser.click("Enter it by hand instead").await;
    browser.see("New account").await;
    browser.close();
}
