//! Lookup by domain: preview, account creation and errors. Pages come from memory; fetching is tested with the
//! fetcher.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rapport_app::lookup::{FetchError, Fetched, HomePages};
use rapport_domain::destination::Destination;
use rapport_domain::member::Role;
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, column, members_of, on_both_engines};

on_both_engines! {
    a_page_is_previewed_and_nothing_is_stored,
    an_account_is_created_from_it,
    the_request_takes_precedence_over_what_was_found,
    a_domain_creates_only_one_account,
    a_failed_lookup_says_why,
    an_invalid_request_is_refused,
}

const LOOKUP: &str = "/api/lookup/";

/// Pages by address. For any other address, the first word of the host decides which error is returned.
struct Pages(HashMap<&'static str, &'static str>);

impl HomePages for Pages {
    fn fetch<'a>(
        &'a self,
        page: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<Fetched, FetchError>> + Send + 'a>> {
        Box::pin(async move {
            let host = page.authority();
            if let Some(html) = self.0.get(host) {
                let at = Destination::parse(&format!("https://www.{host}/welcome")).unwrap();
                let content_type = Some("text/html; charset=utf-8".to_owned());
                return Ok(Fetched { at, content_type, body: html.as_bytes().to_vec() });
            }
            Err(match host.split('.').next().unwrap_or_default() {
                "pdf" => FetchError::NotHtml,
                "gone" => FetchError::Answered(404),
                "private" => FetchError::Unreachable("the address 10.1.2.3 is not public".to_owned()),
                "ours" => FetchError::Own("no resolver".to_owned()),
                _ => FetchError::Unreachable("the domain has no IP address".to_owned()),
            })
        })
    }
}

async fn with_pages(engine: Engine) -> Server {
    let pages = pages();
    Server::with_parts(engine, move |parts| parts.home_pages = Arc::clone(&pages)).await
}

/// The home pages of `nordlys.test` and `plain.test`.
pub fn pages() -> Arc<dyn HomePages> {
    let nordlys = r#"<title>Pumps | Nordlys</title><meta name=description content="Pumps since 1987.">
        <meta property=og:site_name content=Nordlys><link rel=icon href=/icon.png>
        <script type="application/ld+json">{"@type": "Organization", "name": "Nordlys AS", "telephone": "+47 1"}</script>"#;
    Arc::new(Pages(HashMap::from([("nordlys.test", nordlys), ("plain.test", "<p>hello")])))
}

async fn a_page_is_previewed_and_nothing_is_stored(engine: Engine) {
    let acme = with_pages(engine).await;
    let before = acme.contents();
    let shown = acme.post(LOOKUP).json(&json!({"domain": "Nordlys.test"})).send().await.expect(200);
    assert_eq!(
        members_of(&shown).join(" "),
        "account_id description domain logo name organization site_name title url"
    );
    assert_eq!((&shown["domain"], &shown["name"]), (&json!("nordlys.test"), &json!("Nordlys AS")));
    assert_eq!(shown["url"], json!("https://www.nordlys.test/welcome"));
    assert_eq!((&shown["title"], &shown["site_name"]), (&json!("Pumps | Nordlys"), &json!("Nordlys")));
    assert_eq!(shown["description"], json!("Pumps since 1987."));
    assert_eq!(shown["logo"], json!("https://www.nordlys.test/icon.png"));
    assert_eq!((&shown["organization"]["telephone"], &shown["account_id"]), (&json!("+47 1"), &Value::Null));
    let bare =
        acme.post(LOOKUP).json(&json!({"domain": "plain.test", "create": false})).send().await.expect(200);
    assert_eq!((&bare["name"], &bare["organization"]), (&json!("plain.test"), &Value::Null));
    assert_eq!(acme.contents(), before);
}

async fn an_account_is_created_from_it(engine: Engine) {
    let acme = with_pages(engine).await;
    let token = acme.token_of(Role::Member);
    let call = acme.post(LOOKUP).json(&json!({"domain": "nordlys.test", "create": true})).token(&token);
    let account = call.send().await.expect(201);
    assert_eq!((&account["name"], &account["status"]), (&json!("Nordlys AS"), &json!("prospect")));
    assert_eq!(
        account["custom_fields"],
        json!({"website": "https://www.nordlys.test/welcome", "description": "Pumps since 1987."})
    );
    assert_eq!(acme.history(&account).await[0]["source"], json!("lookup"));
    let events = acme.events(&account);
    assert_eq!(column(&events, "type"), ["account.created"]);
    assert_eq!(events[0]["data"]["source"], json!("lookup"));
}

async fn the_request_takes_precedence_over_what_was_found(engine: Engine) {
    let acme = with_pages(engine).await;
    let body = json!({
        "domain": "nordlys.test", "create": true, "name": "Nordlys Pumper", "status": "contacted",
        "custom_fields": {"description": null, "website": "https://nordlys.test", "plan": "pro"},
    });
    let account = acme.post(LOOKUP).json(&body).send().await.expect(201);
    assert_eq!((&account["name"], &account["status"]), (&json!("Nordlys Pumper"), &json!("contacted")));
    assert_eq!(account["custom_fields"], json!({"website": "https://nordlys.test", "plan": "pro"}));
}

async fn a_domain_creates_only_one_account(engine: Engine) {
    let acme = with_pages(engine).await;
    let create = json!({"domain": "nordlys.test", "create": true});
    let account = acme.post(LOOKUP).json(&create).send().await.expect(201);
    let refused = acme.post(LOOKUP).json(&create).expect_refused(409, "domain_taken").await;
    assert!(refused.text().contains(account["id"].as_str().unwrap()), "it names the account");
    let shown = acme.post(LOOKUP).json(&json!({"domain": "https://nordlys.test/x"})).send().await.expect(200);
    assert_eq!(shown["account_id"], account["id"]);
    acme.delete(&format!("/api/accounts/{}/", account["id"].as_str().unwrap())).send().await.expect(204);
    acme.post(LOOKUP).json(&create).send().await.expect(201);
}

async fn a_failed_lookup_says_why(engine: Engine) {
    let body = |domain: &str| json!({"domain": domain, "create": true});
    let without_pages = Tenant::on(engine);
    without_pages.post(LOOKUP).json(&body("nordlys.test")).expect_refused(503, "busy").await;
    let acme = with_pages(engine).await;
    for (domain, code) in [
        ("pdf.test", "not_html"),
        ("gone.test", "no_page"),
        ("private.test", "unreachable"),
        ("nowhere.test", "unreachable"),
    ] {
        acme.post(LOOKUP).json(&body(domain)).expect_faults(&[("/domain", code)]).await;
    }
    let private = acme.post(LOOKUP).json(&body("private.test")).send().await.expect(422);
    let nowhere = acme.post(LOOKUP).json(&body("nowhere.test")).send().await.expect(422);
    assert_eq!(private["errors"], nowhere["errors"], "the answer doesn't tell what the network looks like");
    acme.post(LOOKUP).json(&body("ours.test")).expect_refused(503, "busy").await;
}

async fn an_invalid_request_is_refused(engine: Engine) {
    let acme = with_pages(engine).await;
    acme.post(LOOKUP).json(&json!({})).expect_faults(&[("/domain", "required")]).await;
    let wrong = json!({"domain": "a b", "create": "yes", "name": "", "more": 1});
    let faults = [
        ("/domain", "bad_character"),
        ("/create", "wrong_type"),
        ("/name", "empty"),
        ("/name", "only_with_create"),
        ("/more", "unknown_member"),
    ];
    acme.post(LOOKUP).json(&wrong).expect_faults(&faults).await;
    let fine = json!({"domain": "nordlys.test"});
    acme.post(LOOKUP).json(&fine).without_credential().expect_refused(401, "unauthenticated").await;
}
