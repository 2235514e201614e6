//! The API documentation can be read in the browser.

use rapport_testkit::{Hands, with_all_hands};

use crate::office::Office;

with_all_hands!(an_endpoint_is_found_and_read, an_error_code_is_looked_up, the_event_catalogue_is_read);

async fn an_endpoint_is_found_and_read(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click("API").await;
    browser.see("OpenAPI document").await;
    // The navigation stays, and has a link of the same name.
    browser.click_css(".docs nav a[href='#group-webhooks']").await;
    browser.see_not("Returns its secret, once.").await;
    browser.click_css("#create_webhook > summary").await;
    browser.see("Returns its secret, once.").await;
    browser.see("Authenticate with Authorization: Bearer <token>.").await;
    browser.click("Dashboard").await;
    browser.see("Ana Ruiz").await;
    browser.close();
}

async fn an_error_code_is_looked_up(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    // The address in the `Link` header of a problem.
    browser.go("/api/errors/imported_id_taken/").await;
    browser.see_in("#error-imported_id_taken", "Update that account, or send another imported_id.").await;
    browser.click("Events").await;
    browser.click_css("article:first-of-type details > summary").await;
    browser.see("data.account.imported_id").await;
    browser.click("the event catalogue").await;
    browser.see("Everything that webhooks can deliver.").await;
    browser.close();
}

async fn the_event_catalogue_is_read(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click("Webhooks").await;
    browser.click("Receiving webhooks").await;
    browser.see("by an upsert, an import, a lookup or a mail").await;
    browser.click("All members of every event, with examples").await;
    browser.see("Activity never creates accounts.").await;
    browser.see_in("[aria-labelledby='event-client-contact-due']", "data.days_overdue").await;
    let example = "[aria-labelledby='event-account-status-changed'] details";
    browser.expect_count(&format!("{example}[open]"), 0).await;
    browser.click_css(&format!("{example} > summary")).await;
    browser.see_in(&format!("{example} pre"), "\"previous_status\": \"contacted\"").await;
    browser.click_css("a[href='#event-message-inbound']").await;
    browser.see("Automatic mails, such as out-of-office replies, send nothing.").await;
    if hands == Hands::Mouse {
        assert_eq!(browser.axe().await, [""; 0]);
    }
    browser.click("JSON Schemas").await;
    browser.see("/api/schemas/events/account.created.json").await;
    browser.close();
}
