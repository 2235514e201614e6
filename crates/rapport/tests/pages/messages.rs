//! Messages about what was done: they are announced and disappear, unless somebody is at them or they are errors. And
//! errors in scripts, which fail a test. And a live page loads itself again only when it has to.

use rapport_testkit::Hands;
use rapport_testkit::browser::Setup;
use serde_json::json;

use crate::office::Office;

/// Lets the test decide when a second passes.
const HOLD_TIME: &str = "window.setInterval = (tick) => { window.tick = tick; return 0 }";
const TICKS: &str = "for (let n = 0; n < arguments[0]; n += 1) window.tick()";
const SAID: &str = "return document.getElementById('said').textContent";

#[tokio::test]
async fn a_message_with_undo_stays_long_enough_and_while_somebody_is_at_it() {
    let office = Office::open();
    office.account(json!({ "imported_id": "a", "name": "Nordlys Bank" }));
    let browser = office.browser_at("/pipeline", Hands::Mouse).await;
    browser.run(HOLD_TIME, Vec::new()).await;
    browser.drag(".item", "#stage-contacted").await;
    browser.see_in("#messages", "Moved Nordlys Bank to Contacted.").await;
    browser.expect_script(SAID, &json!("Moved Nordlys Bank to Contacted.")).await;
    browser.expect_script("return document.getElementById('said').role", &json!("status")).await;
    browser.run("document.querySelector('#messages button').focus()", Vec::new()).await;
    browser.run(TICKS, vec![json!(100)]).await;
    browser.expect_count("#messages .flash", 1).await;
    browser.run("document.activeElement.blur()", Vec::new()).await;
    browser.run(TICKS, vec![json!(19)]).await;
    browser.expect_count("#messages .flash", 1).await;
    browser.run(TICKS, vec![json!(1)]).await;
    browser.expect_count("#messages .flash", 0).await;
    browser.expect_script(SAID, &json!("")).await;
    browser.close();
}

#[tokio::test]
async fn a_message_disappears_by_itself_or_when_it_is_dismissed() {
    let office = Office::open();
    let browser = office.browser().await;
    for waits in [true, false] {
        browser.go("/settings").await;
        browser.click("Save").await;
        browser.expect_some("#messages .flash").await;
        if !waits {
            browser.click("Dismiss").await;
        }
        browser.expect_count("#messages .flash", 0).await;
    }
    browser.close();
    // Without scripts it stays, in its own place.
    let browser = office.browser_as(Setup { hands: Hands::NoScripts, ..Setup::default() }).await;
    browser.go("/settings").await;
    browser.click("Save").await;
    browser.expect_count("#messages .flash[role=status]", 1).await;
    browser.close();
}

#[tokio::test]
async fn a_live_page_is_loaded_once_and_then_only_after_a_change() {
    let office = Office::open();
    office.account(json!({ "imported_id": "a", "name": "Nordlys Bank" }));
    let browser = office.browser_at("/accounts", Hands::Mouse).await;
    browser.see("Nordlys Bank").await;
    // A second stream is told about a change right away, and the page's own stream was opened before.
    let heard = "const done = arguments[arguments.length - 1];
        const stream = new EventSource('/live?version=old');
        stream.addEventListener('changed', () => { stream.close(); requestAnimationFrame(() => setTimeout(done)) })";
    browser.run_async(heard, Vec::new()).await;
    let loads = "return performance.getEntriesByType('resource')
        .filter((entry) => entry.initiatorType === 'fetch' && entry.name === location.href).length";
    browser.expect_script(loads, &json!(0)).await;
    office.account(json!({ "imported_id": "b", "name": "Harbour Freight" }));
    browser.see("Harbour Freight").await;
    browser.close();
}

#[tokio::test]
async fn an_error_that_no_script_catches_is_noticed() {
    let office = Office::open();
    let browser = office.browser().await;
    browser.run("setTimeout(() => { throw new Error('thrown') })", Vec::new()).await;
    browser.run("setTimeout(() => Promise.reject(new Error('rejected')))", Vec::new()).await;
    let mut errors = Vec::new();
    while errors.len() < 2 {
        errors.extend(browser.script_errors().await);
    }
    assert!(errors[0].contains("thrown") && errors[1].contains("rejected"), "{errors:?}");
    browser.close();
}
