//! `rapport demo` as a visitor sees it: what it prints, what its company has, that webhooks really arrive, and
//! that nothing is left behind.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Service, demo, program, run, wait_until};

struct Visitor {
    service: Service,
    token: String,
}

impl Visitor {
    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let authorization = format!("Bearer {}", self.token);
        let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
        let (status, text) = self.service.request(method, path, &headers, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in: {text}"))
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, "")
    }

    /// The items of all pages of a list.
    fn all(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("{path}limit=200{cursor}"));
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }
}

/// The value of a printed line such as `login       maya@…`.
fn printed<'a>(said: &'a str, label: &str) -> &'a str {
    let line = said.lines().find_map(|line| line.strip_prefix(label));
    line.unwrap_or_else(|| panic!("{label} is missing in:\n{said}")).trim()
}

#[test]
fn the_demo_shows_a_company_delivers_for_real_and_leaves_nothing() {
    let temporary = TempDir::new().unwrap();
    let (service, said) = demo(temporary.path());
    assert_eq!(printed(&said, "address"), format!("http://{}", service.address));
    assert_eq!(printed(&said, "login"), "maya@brightwater.test");
    assert!(printed(&said, "password").len() >= 10, "{said}");
    assert_eq!(said.matches("\ncurl -s ").count(), 3, "{said}");
    let mut visitor = Visitor { token: printed(&said, "API token").to_owned(), service };

    has_a_pipeline(&visitor);
    has_clients_to_call(&visitor);
    has_a_delivery_history(&visitor);
    has_campaigns_an_import_and_digests(&visitor);
    ingests(&visitor, printed(&said, "ingest key"));
    let delivered = delivers_for_real(&visitor);

    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    visitor.service.signal("TERM");
    assert_eq!(visitor.service.wait().code(), Some(0));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "something was left behind");
    let rest = visitor.service.rest_of_output();
    let arrived = rest.split("\n#").find(|event| event.contains(&delivered));
    let arrived = arrived.unwrap_or_else(|| panic!("{delivered} was not printed:\n{rest}"));
    for header in ["X-Service-Signature", "webhook-signature"] {
        assert!(arrived.contains(&format!("signature verified: {header}")), "{arrived}");
    }
    assert!(!rest.contains("SIGNATURE WRONG"), "{rest}");
}

fn has_a_pipeline(visitor: &Visitor) {
    let accounts = visitor.all("/api/accounts/?");
    assert!(accounts.len() >= 300, "{} accounts", accounts.len());
    for status in
        ["prospect", "contacted", "in_negotiation", "in_trial", "customer", "lost", "do_not_contact"]
    {
        let count = accounts.iter().filter(|account| account["status"] == status).count();
        assert!(count >= 5, "{count} accounts are {status}");
    }
    let currencies: std::collections::HashSet<&str> =
        accounts.iter().filter_map(|account| account["captured_value_currency"].as_str()).collect();
    assert!(currencies.len() >= 4, "{currencies:?}");
    let customer = accounts
        .iter()
        .find(|account| account["status"] == "customer" && account["custom_fields"]["plan"].is_string())
        .expect("a customer with a plan");
    let timeline = visitor.get(&format!("/api/accounts/{}/timeline/", customer["id"].as_str().unwrap()));
    assert!(timeline["items"].as_array().unwrap().len() >= 4, "{timeline}");
}

fn has_clients_to_call(visitor: &Visitor) {
    let clients = visitor.get("/api/clients/?tab=overdue");
    for tab in ["overdue", "due_soon", "snoozed", "tracked"] {
        assert!(clients["counts"][tab]["count"].as_i64().unwrap() > 0, "{tab}: {}", clients["counts"]);
    }
    let most_overdue = clients["items"][0]["days_overdue"].as_i64().unwrap();
    assert!(most_overdue > 60, "months, not {most_overdue} days");
}

fn has_a_delivery_history(visitor: &Visitor) {
    let webhooks = visitor.all("/api/webhooks/?");
    let disabled: Vec<&Value> = webhooks.iter().filter(|webhook| webhook["enabled"] == false).collect();
    assert!(webhooks.len() == 3 && disabled.len() == 1, "{webhooks:?}");
    assert!(disabled[0]["auto_disabled_at"].is_string(), "{}", disabled[0]);
    // Attempts that were in progress when the twentieth failed still count.
    assert!(disabled[0]["failure_streak"].as_i64().unwrap() >= 20, "{}", disabled[0]);
    assert!(disabled[0]["held_count"].as_i64().unwrap() > 10, "{}", disabled[0]);
    let deliveries = visitor.all("/api/deliveries/?");
    let count = |test: &dyn Fn(&Value) -> bool| deliveries.iter().filter(|delivery| test(delivery)).count();
    let succeeded = count(&|delivery| delivery["state"] == "succeeded");
    let retried = count(&|delivery| {
        delivery["state"] == "succeeded" && delivery["attempt_count"].as_i64().is_some_and(|made| made > 1)
    });
    let failed = count(&|delivery| delivery["state"] == "failed");
    assert!(
        succeeded > 200 && retried > 0 && failed > 0,
        "{succeeded}, {retried}, {failed}: {}",
        deliveries[0]
    );
}

fn has_campaigns_an_import_and_digests(visitor: &Visitor) {
    let campaigns = visitor.all("/api/campaigns/?");
    assert!(campaigns.len() >= 4, "{campaigns:?}");
    for campaign in &campaigns {
        let path = format!("/api/campaigns/{}/members/", campaign["id"].as_str().unwrap());
        assert!(!visitor.get(&path)["items"].as_array().unwrap().is_empty(), "{campaign} has nobody in it");
    }
    let imports = visitor.all("/api/imports/?");
    assert_eq!(imports.len(), 1);
    assert_eq!(
        (imports[0]["state"].as_str(), imports[0]["counts"]["failed"].as_i64()),
        (Some("finished"), Some(2))
    );
    assert!(visitor.get("/api/digests/")["items"].as_array().unwrap().len() >= 3);
}

fn ingests(visitor: &Visitor, key: &str) {
    let headers = [("X-Service-Ingest-Key", key), ("Content-Type", "application/json")];
    let body = json!({"events": [{"imported_id": "crm-00001", "kind": "app_opened"}]}).to_string();
    let (status, answer) = visitor.service.request("POST", "/api/pulse/ingest/", &headers, &body);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"accepted\":1"), "{answer}");
}

/// Moves an account, waits until the healthy webhook was told, and returns the delivery's id.
fn delivers_for_real(visitor: &Visitor) -> String {
    let prospect = &visitor.get("/api/accounts/?status=prospect&limit=1")["items"][0];
    let id = prospect["id"].as_str().unwrap().to_owned();
    let path = format!("/api/accounts/{id}/status/");
    visitor.ask("POST", &path, &json!({"status": "contacted"}).to_string());
    let crm = visitor.all("/api/webhooks/?").into_iter().find(|webhook| webhook["description"] == "CRM sync");
    let crm = crm.expect("the CRM's webhook");
    let path = format!(
        "/api/deliveries/?webhook={}&type=account.status_changed&limit=1",
        crm["id"].as_str().unwrap()
    );
    let mut delivered = String::new();
    wait_until("the delivery to succeed", || {
        let latest = &visitor.get(&path)["items"][0];
        latest["id"].as_str().unwrap().clone_into(&mut delivered);
        latest["account_id"] == id.as_str() && latest["state"] == "succeeded"
    });
    delivered
}

#[test]
fn the_demo_refuses_existing_data() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("mine"), "").unwrap();
    let path = directory.path().to_str().unwrap();
    for (arguments, named) in
        [(["demo", "--data-dir", path], "--data-dir"), (["demo", "--keep", path], "(--keep)")]
    {
        let ended = run(&mut program(&arguments));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
