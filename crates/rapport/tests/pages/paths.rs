//! All pages, and who may see them, for the tests of rules that every page must follow.

use serde_json::{Value, json};

use crate::office::Office;

pub struct Page {
    pub path: String,
    pub least: Least,
}

/// The lowest role that sees a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Least {
    Viewer,
    Member,
    Admin,
}

/// Pages with a fixed address that everyone sees.
const FOR_ALL: [&str; 16] = [
    "/",
    "/pipeline",
    "/pipeline/moves",
    "/accounts",
    "/accounts?status=customer&sort=name",
    "/accounts?q=nobody-is-called-so",
    "/accounts?columns=imported_id",
    "/accounts?status=nonsense&cursor=nonsense",
    "/clients",
    "/clients?tab=due_soon",
    "/clients?tab=snoozed",
    "/clients?tab=tracked",
    "/campaigns",
    "/channels",
    "/companies",
    "/profile",
];

/// Pages with a fixed address for those who work with accounts.
const FOR_MEMBERS: [&str; 3] = ["/accounts/new", "/accounts/lookup", "/campaigns/new"];

/// Pages with a fixed address that only admins see, or only owners.
const FOR_ADMINS: [&str; 25] = [
    "/imports",
    "/webhooks",
    "/webhooks/new",
    "/webhooks/check",
    "/webhooks/receiving",
    "/webhooks/events",
    "/deliveries",
    "/deliveries?state=failed",
    "/deliveries?state=held&since=2020-01-01&until=2020-01-02",
    "/redeliveries",
    "/redeliveries/new",
    "/redeliveries/new?state=failed",
    "/settings",
    "/settings/deletion",
    "/settings/currencies",
    "/settings/cadence",
    "/settings/digest",
    "/settings/members",
    "/settings/security",
    "/settings/sso",
    "/settings/tokens",
    "/settings/ingest",
    "/settings/mail",
    "/settings/audit",
    "/settings/system",
];

/// Pages about a person's own login. They show nothing of the company.
pub const ABOUT_LOGIN: [&str; 3] = ["/profile/app", "/profile/passkeys", "/profile/recovery-codes"];

/// Pages for people who are not logged in.
pub fn for_strangers(office: &Office) -> Vec<String> {
    let invitation = json!({ "email": "cy@acme.test", "role": "member" });
    let invitation = office.api("POST", "/api/invitations/", &invitation);
    let member = text(&office.employ("bo@acme.test", "Bo Lind", "member", "the password of Bo Lind"), "/id");
    let reset = office.api("POST", &format!("/api/members/{member}/password-reset/"), &Value::Null);
    let fixed = ["/login", "/forgotten", "/sso/nobody", "/api/docs/"];
    let mut pages = fixed.map(str::to_owned).to_vec();
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
    let fixed =
        [(Least::Viewer, FOR_ALL.as_slice()), (Least::Member, &FOR_MEMBERS), (Least::Admin, &FOR_ADMINS)];
    let page = |least, path: &&str| Page { path: (*path).to_owned(), least };
    let mut pages: Vec<Page> = fixed
        .into_iter()
        .flat_map(|(least, paths)| paths.iter().map(move |path| page(least, path)))
        .collect();
    let mut add = |path: String, least| pages.push(Page { path, least });

    let client = first(office, "/api/clients/?tab=overdue&limit=1", "/account/id");
    add(format!("/accounts/{client}"), Least::Viewer);
    let (account, conversation) = conversation(office);
    add(format!("/accounts/{account}"), Least::Viewer);
    add(format!("/accounts/{account}/conversations/{conversation}"), Least::Viewer);
    let note = json!({ "text": "Prefers calls before noon", "pinned": true });
    let note = office.api("POST", &format!("/api/accounts/{account}/notes/"), &note);
    let message = first(office, &format!("/api/conversations/{conversation}/messages/"), "/id");
    for entry in [text(&note, "/id"), message] {
        add(format!("/accounts/{account}?edit=entry&entry={entry}"), Least::Viewer);
    }
    add(format!("/accounts/{account}?show=corrections"), Least::Viewer);
    add(format!("/channels/{}", first(office, "/api/channels/", "/id")), Least::Viewer);
    let campaign = first(office, "/api/campaigns/?limit=1", "/id");
    add(format!("/campaigns/{campaign}"), Least::Viewer);
    add(format!("/campaigns/{campaign}/edit"), Least::Member);

    add(format!("/imports/{}", first(office, "/api/imports/?limit=1", "/id")), Least::Admin);
    let uploaded = office.upload("Record;Company\ncrm-1;Nordlys Bank\n");
    add(format!("/imports/{}/columns", text(&uploaded, "/id")), Least::Admin);
    for webhook in office.api("GET", "/api/webhooks/", &Value::Null)["items"].as_array().into_iter().flatten()
    {
        add(format!("/webhooks/{}", text(webhook, "/id")), Least::Admin);
        add(format!("/webhooks/{}/edit", text(webhook, "/id")), Least::Admin);
    }
    for state in ["succeeded", "failed", "held"] {
        let delivery = first(office, &format!("/api/deliveries/?limit=1&state={state}"), "/id");
        add(format!("/deliveries/{delivery}"), Least::Admin);
    }
    let redelivery = office.api("POST", "/api/deliveries/redeliver/", &json!({ "account": client }));
    add(format!("/redeliveries/{}", text(&redelivery, "/id")), Least::Admin);
    // Of the two currencies that accounts have besides the default, one has a rate.
    let rate = json!({ "currency": "GBP", "valid_from": "2020-01-01", "rate": "1.15" });
    let rate = office.api("POST", "/api/exchange-rates/", &rate);
    add(format!("/settings/currencies/{}", text(&rate, "/id")), Least::Admin);
    add(format!("/settings/digest/{}", first(office, "/api/digests/", "/week")), Least::Admin);
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
