//! From an empty directory to a company with its owner.

use rapport_testkit::Browser;

use crate::program::Place;

#[tokio::test]
async fn the_printed_link_makes_the_company_and_its_owner_once() {
    let place = Place::sqlite();
    let mut service = place.serve();
    let link = service.line_that_contains("/setup/");
    let browser = Browser::open(&format!("http://{}", service.address)).await;

    browser.go("/").await;
    browser.see("The server printed a link").await;
    browser.go(&format!("/setup/{}", "x".repeat(24))).await;
    browser.see("Nothing here").await;

    browser.go(&link).await;
    browser.fill("company", "Nordlys & Söhne").await;
    let project = "return document.getElementById('project').value";
    browser
        .wait("the project name to follow", async |browser| {
            browser.run(project, Vec::new()).await == "nordlys-sohne"
        })
        .await;
    browser.fill("project", "nordlys").await;
    browser.fill("name", "Ida Berg").await;
    browser.fill("email", "ida@nordlys.test").await;
    browser.fill("password", "a long enough one").await;
    browser.click("Create the company").await;
    browser.see("They are shown this once").await;
    assert!(browser.text_of("#token").await.starts_with("rap_"));
    assert!(browser.text_of("#key").await.starts_with("rik_"));
    browser.click("To the dashboard").await;
    browser.see("Nordlys & Söhne").await;
    browser.see("Ida Berg").await;

    browser.go("/accounts").await;
    browser.press("n").await;
    browser.fill("name", "Harbour Freight").await;
    browser.fill("captured_value", "a lot").await;
    browser.click("Create").await;
    browser.see("Must be a decimal amount").await;
    browser.fill("captured_value", "1200.50").await;
    browser.click("Create").await;
    browser.see("Harbour Freight").await;
    browser.see("1,200.50").await;

    browser.go(&link).await;
    browser.see("Nothing here").await;
    browser.close().await;
}

#[tokio::test]
async fn what_was_typed_stays_and_the_fault_stands_beside_its_field() {
    let place = Place::sqlite();
    let mut service = place.serve();
    let link = service.line_that_contains("/setup/");
    let browser = Browser::open(&format!("http://{}", service.address)).await;
    browser.go(&link).await;
    browser.fill("company", "Nordlys").await;
    browser.fill("project", "Not A Slug!").await;
    browser.fill("name", "Ida Berg").await;
    browser.fill("email", "ida@nordlys.test").await;
    browser.fill("password", "a long enough one").await;
    browser.click("Create the company").await;
    browser
        .wait("the fault", async |browser| !browser.text_of("#project-note").await.starts_with("Short"))
        .await;
    assert_eq!(browser.run("return document.getElementById('name').value", Vec::new()).await, "Ida Berg");
    assert_eq!(browser.run("return document.getElementById('password').value", Vec::new()).await, "");
    assert_eq!(browser.axe().await, [""; 0]);
    browser.close().await;
}
