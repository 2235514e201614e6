//! A member sees neither the links to admin pages nor the pages.

use std::collections::BTreeSet;

use rapport_testkit::Browser;

use crate::office::{Login, Office, log_in};
use crate::paths::{Page, pages};

#[tokio::test]
async fn a_member_sees_neither_the_links_nor_the_pages() {
    let office = Office::demo();
    let (for_admins, for_members): (Vec<Page>, Vec<Page>) =
        pages(&office).into_iter().partition(|page| page.is_for_admins);
    let password = "the password of Bo Lind".to_owned();
    office.employ("bo@acme.test", "Bo Lind", "member", &password);
    let browser = Browser::open(&office.base()).await;
    log_in(&browser, &Login { email: "bo@acme.test".to_owned(), password }).await;

    for Page { path, .. } in &for_admins {
        browser.go(path).await;
        browser.see("Your role doesn’t allow this").await;
        browser.see("403").await;
    }
    let first_part =
        |path: &str| path.split('/').nth(1).unwrap_or("").split('?').next().unwrap_or("").to_owned();
    let refused: BTreeSet<String> = for_admins.iter().map(|page| first_part(&page.path)).collect();
    for Page { path, .. } in &for_members {
        browser.go(path).await;
        browser.see("Bo Lind").await;
        browser.see_not("Your role doesn’t allow this").await;
        let links = "return [...document.querySelectorAll('a[href^=\"/\"]')].map((link) => link.getAttribute('href'))";
        let links = browser.run(links, Vec::new()).await;
        for link in links.as_array().into_iter().flatten().filter_map(|link| link.as_str()) {
            assert!(!refused.contains(&first_part(link)), "{path} has a link to {link}");
        }
    }
    browser.close();
}
