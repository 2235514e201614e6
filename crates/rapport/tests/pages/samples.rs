//! Sample data: a new company fills its pages with one click, and empties them with another.

use rapport_testkit::browser::Setup;
use rapport_testkit::{Hands, with_all_hands};

use crate::every_page::{assert_none, faults};
use crate::first_run::new_company;
use crate::program::Place;

with_all_hands!(one_click_fills_the_pages_and_one_empties_them);

async fn one_click_fills_the_pages_and_one_empties_them(hands: Hands) {
    let place = Place::sqlite();
    let mut service = place.serve();
    let browser = new_company(&mut service, Setup { hands, ..Setup::default() }).await;
    browser.see("0 of 3 done").await;
    browser.click("Add sample data").await;
    browser.see("Added 36 sample accounts.").await;
    browser.see("Pipeline by stage").await;
    browser.see("0 of 3 done").await;
    browser.click("Clients").await;
    browser.see("Cedar Logistics").await;
    browser.click("Pipeline").await;
    browser.see("Osprey Energy").await;
    browser.click("Accounts").await;
    browser.click("Zephyr Wind").await;
    browser.see("Sample data is shown").await;
    browser.see("dashboards.viewed").await;
    browser.click("Remove sample data").await;
    browser.see("The sample data is removed.").await;
    browser.see("Add sample data").await;
    browser.click("Accounts").await;
    browser.see("No accounts yet").await;
    browser.close();
}

#[tokio::test]
async fn pages_with_sample_data_fit_and_have_no_faults() {
    let place = Place::sqlite();
    let mut service = place.serve();
    let browser = new_company(&mut service, Setup::default()).await;
    let mut found = faults(&browser, "/").await;
    browser.click("Add sample data").await;
    browser.see("Pipeline by stage").await;
    for path in ["/", "/clients", "/pipeline", "/accounts", "/channels"] {
        found.extend(faults(&browser, path).await);
        browser.see("Sample data is shown").await;
    }
    browser.close();
    assert_none(&found);
}
