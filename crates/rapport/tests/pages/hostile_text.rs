//! Text from outside is only text: markup, formulas, right-to-left marks and emoji are shown as they are.

use rapport_testkit::{Behaviour, Receiver};
use serde_json::{Value, json};

use crate::office::Office;
use crate::program::wait_until;

const MARKUP: &str = "</title><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'><b>Bold";
const FORMULA: &str = "=HYPERLINK(\"http://evil.test\",\"x\")";
const BIDI: &str = "\u{202e}knaB syldroN\u{202c} \u{2067}עברית\u{2069} 🏦👩‍💻";

#[tokio::test]
async fn it_shows_as_text_on_every_page_that_has_it() {
    let receiver = Receiver::start();
    let body = format!("<html>{MARKUP}</html>").into_bytes();
    let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    receiver.answer(Behaviour::StatusWith { code: 404, headers, body });
    let authority = receiver.ca_file().to_str().expect("a path").to_owned();
    let office = Office::open_with(&["--extra-ca", &authority, "--allow-destination", "127.0.0.0/8"]);
    let hook = json!({ "url": receiver.url("/hook"), "description": MARKUP, "events": ["account.created"] });
    let hook = office.api("POST", "/api/webhooks/", &hook)["id"].as_str().expect("an id").to_owned();
    let mut paths = Vec::new();
    for (number, name) in [MARKUP, FORMULA, BIDI].into_iter().enumerate() {
        let account = office.account(json!({
            "imported_id": format!("<i>{number}</i>"), "name": name, "status": "customer",
            "custom_fields": { "plan": MARKUP, MARKUP: FORMULA, "seats": BIDI },
        }));
        let id = account["id"].as_str().expect("an id").to_owned();
        let talk =
            office.api("POST", &format!("/api/accounts/{id}/conversations/"), &json!({ "subject": MARKUP }));
        let talk = talk["id"].as_str().expect("an id");
        let said = json!({ "direction": "inbound", "subject": MARKUP, "body": format!("{MARKUP}\n{BIDI}") });
        office.api("POST", &format!("/api/conversations/{talk}/messages/"), &said);
        office.api(
            "POST",
            &format!("/api/accounts/{id}/contacts/"),
            &json!({ "kind": "call", "note": MARKUP }),
        );
        paths.push(format!("/accounts/{id}"));
    }
    office.ingest(json!([{ "imported_id": "<i>0</i>", "kind": "feature_used", "feature": "<b>x</b>" }]));
    let mut delivery = String::new();
    wait_until("a delivery with an excerpt", || {
        let listed = office.api("GET", "/api/deliveries/?state=failed&limit=1", &Value::Null);
        listed["items"][0]["id"].as_str().unwrap_or_default().clone_into(&mut delivery);
        !delivery.is_empty()
    });
    paths.extend(
        [
            "/",
            "/pipeline",
            "/accounts?columns=name,field.plan",
            "/clients?tab=tracked",
            "/webhooks",
            "/deliveries",
        ]
        .map(str::to_owned),
    );
    paths.extend([format!("/webhooks/{hook}"), format!("/deliveries/{delivery}")]);

    let browser = office.browser().await;
    let mut shown = 0;
    for path in paths {
        browser.go(&path).await;
        assert_eq!(browser.run("return window.hacked ?? null", Vec::new()).await, Value::Null, "{path}");
        let strange = "return document.querySelectorAll('main img, main script, main b b, bdi b').length";
        assert_eq!(browser.run(strange, Vec::new()).await, json!(0), "{path}");
        if browser.text().await.contains("<script>window.hacked=1</script>") {
            shown += 1;
        }
    }
    assert!(shown >= 6, "it is shown as it was sent, on {shown} pages");
    browser.close();
}
