//! All pages, and who may see them, for the tests of rules that every page must follow.

use serde_json::{Value, json};

use crate::office::Office;

pub struct Page {
    pub path: String,
    pub is_for_admins: bool,
}

/// Pages with a fixed address that everyone sees.
const FOR_MEMBERS: [&str; 19] = [
    "/",
    "/pipeline",
    "/pipeline/moves",
    "/accounts",
    "/accounts?status=customer&sort=name",
    "/accounts?q=nobody-is-called-so",
    "/accounts?columns=imported_id",
    "/accounts?status=nonsense&cursor=nonsense",
    "/accounts/new",
    "/accounts/lookup",
    "/clients",
    "/clients?tab=due_soon",
    "/clients?tab=snoozed",
    "/clients?tab=tracked",
    "/campaigns",
    "/campaigns/new",
    "/channels",
    "/companies",
    "/profile",
];

/// Pages with a fixed address that only admins see.
const FOR_ADMINS: [&str; 20] = [
    "/imports",
    "/webhooks",
    "/webhooks/new",
    "/webhooks/check",
    "/webhooks/receiving",
    "/deliveries",
    "/deliveries?state=failed",
    "/deliveries?state=held&since=2020-01-01&until=2020-01-02",
    "/redeliveries",
    "/redeliveries/new",
    "/redeliveries/new?state=failed",
    "/settings",
    "/settings/cadence",
    "/settings/digest",
    "/settings/members",
    "/settings/tokens",
    "/settings/ingest",
    "/settings/mail",
    "/settings/audit",
    "/settings/system",
];

/// Pages for people who are not logged in.
pub fn for_strangers(office: &Office) -> Vec<String> {
    let invitation = json!({ "email": "cy@acme.test", "role": "member" });
    let invitation = office.api("POST", "/api/invitations/", &invitation);
    let member = text(&office.employ("bo@acme.test", "Bo Lind", "member", "the password of Bo Lind"), "/id");
    let reset = office.api("POST", &format!("/api/members/{member}/password-reset/"), &Value::Null);
    let mut pages = vec!["/login".to_owned(), "/forgotten".to_owned(), "/api/docs/".to_owned()];
    for (made, begin) in [(invitation, "/invitation/"), (reset, "/password-reset/")] {
        // Without mail the link is in the response. It starts with the service's base URL.
        let link = text(&made, "/link");
        let at = link.find(begin).unwrap_or_else(|| panic!("{begin} is missing in {link}"));
        pages.push(link[at..].to_owned());
    }
    pages
}

/// All pages of the demo company, with one example of each kind of object.
pub fn pages(office: &Office) -> Vec<Page> {
    let fixed = FOR_MEMBERS.map(|path| (path, false)).into_iter().chain(FOR_ADMINS.map(|path| (path, true)));
    let mut pages: Vec<Page> =
        fixed.map(|(path, is_for_admins)| Page { path: path.to_owned(), is_for_admins }).collect();
    let mut add = |path: String, is_for_admins| pages.push(Page { path, is_for_admins });

    let client = first(office, "/api/clients/?tab=overdue&limit=1", "/account/id");
    add(format!("/accounts/{client}"), false);
    let (account, conversation) = conversation(office);
    add(format!("/accounts/{account}"), false);
    add(format!("/accounts/{account}/conversations/{conversation}"), false);
    add(format!("/channels/{}", first(office, "/api/channels/", "/id")), false);
    let campaign = first(office, "/api/campaigns/?limit=1", "/id");
    add(format!("/campaigns/{campaign}"), false);
    add(format!("/campaigns/{campaign}/edit"), false);

    add(format!("/imports/{}", first(office, "/api/imports/?limit=1", "/id")), true);
    let uploaded = office.upload("Record;Company\ncrm-1;Nordlys Bank\n");
    add(format!("/imports/{}/columns", text(&uploaded, "/id")), true);
    for webhook in office.api("GET", "/api/webhooks/", &Value::Null)["items"].as_array().into_iter().flatten()
    {
        add(format!("/webhooks/{}", text(webhook, "/id")), true);
        add(format!("/webhooks/{}/edit", text(webhook, "/id")), true);
    }
    for state in ["succeeded", "failed", "held"] {
        let delivery = first(office, &format!("/api/deliveries/?limit=1&state={state}"), "/id");
        add(format!("/deliveries/{delivery}"), true);
    }
    let redelivery = office.api("POST", "/api/deliveries/redeliver/", &json!({ "account": client }));
    add(format!("/redeliveries/{}", text(&redelivery, "/id")), true);
    add(format!("/settings/digest/{}", first(office, "/api/digests/", "/week")), true);
    pages
}

/// A member of the first item of a list.
fn first(office: &Office, list: &str, member: &str) -> String {
    text(&office.api("GET", list, &Value::Null)["items"][0], member)
}

fn text(value: &Value, member: &str) -> String {
    let found = value.pointer(member).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("{member} is missing in {value}")).to_owned()
}

/// An account and one of its conversations.
fn conversation(office: &Office) -> (String, String) {
    let accounts = office.api("GET", "/api/accounts/?status=customer&limit=50", &Value::Null);
    for account in accounts["items"].as_array().into_iter().flatten() {
        let id = text(account, "/id");
        let found = office.api("GET", &format!("/api/accounts/{id}/conversations/"), &Value::Null);
        if let Some(conversation) = found["items"].get(0) {
            return (id, text(conversation, "/id"));
        }
    }
    panic!("no customer was ever spoken to")
}
