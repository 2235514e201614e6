//! Nobody sees links to pages that their role doesn't allow, nor the pages. Which role may do what is tested for every
//! route in `crates/web/tests/api/matrix.rs`; here it is what a browser shows.

use std::collections::BTreeSet;

use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::{Value, json};

use crate::office::{Login, Office, log_in};
use crate::paths::{Least, Page, pages};

with_all_hands!(a_viewer_looks_and_saves_a_view, members_delete_where_it_is_granted);

/// A new colleague, logged in.
async fn colleague(office: &Office, role: &str, setup: Setup) -> Browser {
    let login = Login { email: format!("{role}@acme.test"), password: format!("the password of a {role}") };
    office.employ(&login.email, "Bo Lind", role, &login.password);
    let browser = Browser::open_as(&office.base(), setup).await;
    log_in(&browser, &login).await;
    browser
}

fn first_part(path: &str) -> String {
    path.split('/').nth(1).unwrap_or("").split('?').next().unwrap_or("").to_owned()
}

async fn sees_what_is_allowed_and_no_link_to_the_rest(role: &str, own: Least) {
    let office = Office::demo();
    let (refused, allowed): (Vec<Page>, Vec<Page>) =
        pages(&office).into_iter().partition(|page| page.least > own);
    let browser = colleague(&office, role, Setup::default()).await;
    for Page { path, .. } in &refused {
        browser.go(path).await;
        browser.see("Your role doesn’t allow this").await;
        browser.see("403").await;
    }
    let of = |least| refused.iter().filter(move |page: &&Page| page.least == least);
    let areas: BTreeSet<String> = of(Least::Admin).map(|page| first_part(&page.path)).collect();
    let forms: BTreeSet<&str> = of(Least::Member).map(|page| page.path.as_str()).collect();
    for Page { path, .. } in &allowed {
        browser.go(path).await;
        browser.see("Bo Lind").await;
        browser.see_not("Your role doesn’t allow this").await;
        let links = "return [...document.querySelectorAll('a[href^=\"/\"]')].map((link) => link.getAttribute('href'))";
        let links = browser.run(links, Vec::new()).await;
        for link in links.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let is_refused = areas.contains(&first_part(link)) || forms.contains(link);
            assert!(!is_refused, "{path} has a link to {link}");
        }
    }
    browser.close();
}

#[tokio::test]
async fn a_member_sees_neither_the_links_nor_the_pages() {
    sees_what_is_allowed_and_no_link_to_the_rest("member", Least::Member).await;
}

#[tokio::test]
async fn a_viewer_sees_neither_the_links_nor_the_pages() {
    sees_what_is_allowed_and_no_link_to_the_rest("viewer", Least::Viewer).await;
}

async fn a_viewer_looks_and_saves_a_view(hands: Hands) {
    let office = Office::open();
    let lost = json!({ "imported_id": "crm-1", "name": "Nordlys Bank", "status": "lost" });
    office.account(lost);
    office.account(json!({ "imported_id": "crm-2", "name": "Fjord Foods", "status": "customer" }));
    let browser = colleague(&office, "viewer", Setup { hands, ..Setup::default() }).await;
    browser.click("Accounts").await;
    browser.see("2 accounts").await;
    browser.see_not("New account").await;
    browser.see_not("Export").await;
    browser.expect_count("input[type=checkbox][name=account]", 0).await;
    browser.click("Nordlys Bank").await;
    browser.see("Timeline").await;
    browser.expect_count("main form[method=post]", 0).await;
    browser.click("Pipeline").await;
    browser.see("Fjord Foods").await;
    browser.expect_count("[draggable=true], form[data-move]", 0).await;

    browser.go("/accounts?status=lost").await;
    browser.click("Save view").await;
    browser.fill("name", "Lost ones").await;
    browser.click("Save").await;
    browser.see("View “Lost ones” saved for everyone.").await;
    browser.click("Edit view").await;
    browser.click("Delete view").await;
    browser.see("View “Lost ones” deleted.").await;
    browser.close();
}

async fn members_delete_where_it_is_granted(hands: Hands) {
    let office = Office::open();
    let account = office.account(json!({ "imported_id": "crm-1", "name": "Nordlys Bank" }));
    let path = format!("/accounts/{}", account["id"].as_str().expect("an id"));
    let member = colleague(&office, "member", Setup { hands, ..Setup::default() }).await;
    member.go(&path).await;
    member.see("Log contact").await;
    member.expect_count("#more", 0).await;

    let owner = office.browser_at("/settings", hands).await;
    owner.choose("delete_role", "member").await;
    owner.click("Save").await;
    owner.see("Company settings saved.").await;
    owner.expect_value("delete_role", "member").await;
    owner.expect_value("export_role", "admin").await;
    owner.click("Audit log").await;
    owner.see_in("#audit tbody tr", "delete role: admin → member").await;
    owner.close();

    member.go(&path).await;
    member.click("More").await;
    member.click("Yes, delete it").await;
    member.click("Delete account").await;
    member.see("Nordlys Bank deleted.").await;
    member.see_not("Export").await;
    member.close();
}
