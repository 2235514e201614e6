//! The API documentation can be read in the browser.

use rapport_testkit::{Hands, with_all_hands};

use crate::office::Office;

with_all_hands!(an_endpoint_is_found_and_read);

async fn an_endpoint_is_found_and_read(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_with(hands).await;
    browser.click("API").await;
    browser.see("OpenAPI document").await;
    browser.click("Webhooks").await;
    browser.see_not("Returns its secret, once.").await;
    browser.click_css("#create_webhook > summary").await;
    browser.see("Returns its secret, once.").await;
    browser.see("Authenticate with Authorization: Bearer <token>.").await;
    browser.click("Back to Rapport").await;
    browser.see("Ana Ruiz").await;
    browser.close();
}
