//! The settings pages: company, cadence, digest, late events, mail, audit log and system.

use rapport_app::job_report::Job;
use rapport_domain::time::Time;
use rapport_testkit::{Browser, Hands, with_all_hands};
use serde_json::{Value, json};

use crate::mailbox::Mailbox;
use crate::office::Office;

with_all_hands!(
    a_refused_zone_keeps_what_was_typed,
    a_cadence_is_looked_at_before_it_is_saved,
    the_digest_is_read_and_sent,
    kept_digests_can_be_read,
    a_company_decides_whether_late_events_move_accounts,
    a_test_mail_arrives_and_its_outcome_shows,
    the_system_page_tells_of_every_job,
);

/// The owner's browser with this settings page open.
async fn settings(office: &Office, hands: Hands, page: &str) -> Browser {
    office.browser_at(&format!("/settings/{page}"), hands).await
}

fn saved(office: &Office) -> Value {
    office.api("GET", "/api/settings/", &json!(null))
}

/// An account that was last contacted so many days ago.
fn contacted(office: &Office, name: &str, status: &str, days_ago: i64) {
    let account = office.account(json!({ "imported_id": name, "name": name, "status": status }));
    let now = Time::parse(account["created_at"].as_str().expect("a time")).expect("a time");
    let contact = json!({ "kind": "call", "occurred_at": now.plus_days(-days_ago).to_string() });
    let id = account["id"].as_str().expect("an id");
    office.api("POST", &format!("/api/accounts/{id}/contacts/"), &contact);
}

async fn a_refused_zone_keeps_what_was_typed(hands: Hands) {
    let office = Office::open();
    let browser = office.browser_at("/settings", hands).await;
    browser.see("Acme").await;
    browser.fill("time_zone", "Mars/Olympus Mons").await;
    browser.fill("default_currency", "SEK").await;
    browser.click("Save").await;
    browser.see("Must be an IANA time zone").await;
    browser.expect_count("[name=time_zone][value='Mars/Olympus Mons'][aria-invalid]", 1).await;
    browser.expect_count("[name=default_currency][value=SEK]:not([aria-invalid])", 1).await;
    assert_eq!(saved(&office)["default_currency"], "USD", "nothing of it is saved");

    browser.fill("time_zone", "Europe/Stockholm").await;
    browser.click("Save").await;
    browser.see("Company settings saved.").await;
    let found = saved(&office);
    assert_eq!(
        (&found["time_zone"], &found["default_currency"]),
        (&json!("Europe/Stockholm"), &json!("SEK"))
    );

    browser.click("Audit log").await;
    for part in [
        "Changed the settings",
        "Ana Ruiz",
        "time zone: UTC → Europe/Stockholm",
        "default currency: USD → SEK",
        "127.0.0.1",
    ] {
        browser.see_in("#audit tbody tr", part).await;
    }
    browser.close();
}

async fn a_cadence_is_looked_at_before_it_is_saved(hands: Hands) {
    let office = Office::open();
    for (name, status) in
        [("Nordlys Bank", "customer"), ("Åre Lifts", "customer"), ("Harbour Freight", "in_negotiation")]
    {
        contacted(&office, name, status, 10);
    }
    let browser = settings(&office, hands, "cadence").await;
    browser.fill("cadence_days", "7").await;
    // The script updates the preview while somebody types.
    if hands == Hands::NoScripts {
        browser.click("Preview").await;
    }
    browser.see("2 accounts become overdue.").await;
    browser.click("In negotiation").await;
    browser.click("Preview").await;
    browser.see("3 accounts become overdue.").await;
    browser.see("Nothing is saved yet.").await;
    assert_eq!(saved(&office)["cadence_days"], 42);

    // The previewed settings are the ones that are saved.
    browser.click("Save").await;
    browser.see("Cadence saved.").await;
    let found = saved(&office);
    assert_eq!(found["cadence_days"], 7);
    assert!(
        found["tracked_stages"].as_array().is_some_and(|stages| stages.contains(&json!("in_negotiation")))
    );
    browser.click("View clients").await;
    for name in ["Nordlys Bank", "Åre Lifts", "Harbour Freight"] {
        browser.see(name).await;
    }

    browser.click("Settings").await;
    browser.click("Cadence").await;
    browser.fill("cadence_days", "30").await;
    browser.click("Preview").await;
    browser.see("No account becomes overdue.").await;
    browser.see("3 accounts are no longer overdue.").await;
    browser.close();
}

async fn the_digest_is_read_and_sent(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    contacted(&office, "Nordlys Bank", "customer", 60);
    let browser = settings(&office, hands, "digest").await;
    browser.see("Preview").await;
    browser.see("- Nordlys Bank: 18 days overdue").await;
    browser.see("The first one is created on the next Monday").await;
    browser.choose("digest_weekday", "friday").await;
    browser.click("Save").await;
    browser.see("Digest schedule saved.").await;
    browser.see("The first one is created on the next Friday").await;
    assert_eq!(saved(&office)["digest_weekday"], "friday");

    browser.click("Send now…").await;
    browser.click("Send now").await;
    browser.see("Digest created: 1 mail is on the way.").await;
    let mail = mailbox.mail(1);
    assert_eq!(mail.header("Subject"), "Acme: 1 client is overdue for contact");
    assert!(mail.plain.contains("Nordlys Bank") && mail.html.contains("Nordlys Bank"), "{}", mail.plain);
    browser.click("View mail").await;
    browser.see("Acme: 1 client is overdue for contact").await;
    browser.see_news("Sent").await;

    browser.click("Digest").await;
    browser.click("Send a digest every week").await;
    browser.click("Save").await;
    browser.see("Weekly digest turned off.").await;
    assert_eq!(saved(&office)["digest_enabled"], false);
    browser.close();
}

async fn kept_digests_can_be_read(hands: Hands) {
    let office = Office::demo();
    let browser = settings(&office, hands, "digest").await;
    browser.see("Past digests").await;
    let week = browser.text_of("#past tbody a").await;
    browser.click(&week).await;
    browser.see(&format!("Digest for {week}")).await;
    browser.see("overdue for contact").await;
    browser.see("None (mail wasn’t configured)").await;
    browser.click("All digests").await;
    browser.see("Past digests").await;
    // The digest as its readers see it.
    browser.go(&format!("/settings/digest/{week}/mail")).await;
    browser.see("overdue for contact").await;
    browser.close();
}

async fn a_company_decides_whether_late_events_move_accounts(hands: Hands) {
    let office = Office::open();
    let browser = settings(&office, hands, "ingest").await;
    browser.expect_count("[name=late_events_move]:checked", 1).await;
    browser.click("Late events move accounts").await;
    browser.click("Save").await;
    browser.see("Ingest settings saved.").await;
    browser.expect_count("[name=late_events_move]:not(:checked)", 1).await;
    assert_eq!(saved(&office)["late_events_move"], false);

    browser.click("Late events move accounts").await;
    browser.click("Save").await;
    browser.see("Ingest settings saved.").await;
    browser.expect_count("[name=late_events_move]:checked", 1).await;
    assert_eq!(saved(&office)["late_events_move"], true);

    browser.click("Audit log").await;
    for part in ["Changed the settings", "late events move: yes → no", "late events move: no → yes"] {
        browser.see_in("#audit", part).await;
    }
    browser.close();
}

async fn a_test_mail_arrives_and_its_outcome_shows(hands: Hands) {
    let (mailbox, office) = Mailbox::with_office();
    let browser = settings(&office, hands, "mail").await;
    browser.see("smtp+plain://127.0.0.1").await;
    browser.see("No mail yet").await;
    browser.click("Send me a test").await;
    browser.see("Test mail to ana@acme.test is on its way. The result appears below.").await;
    assert_eq!(mailbox.mail(1).header("Subject"), "Test mail from Rapport");
    browser.see_news("Sent").await;

    mailbox.refuse("550 5.1.1 no such mailbox");
    browser.click("Send me a test").await;
    browser.see("Test mail to ana@acme.test is on its way.").await;
    browser.see_news("no such mailbox").await;
    browser.click("Audit log").await;
    browser.see("Sent a test mail").await;
    browser.close();
}

async fn the_system_page_tells_of_every_job(hands: Hands) {
    let office = Office::open();
    let browser = settings(&office, hands, "system").await;
    for job in Job::ALL {
        browser.see(job.label()).await;
        browser.see(job.what()).await;
    }
    browser.expect_count("#jobs tbody tr", Job::ALL.len()).await;
    browser.see("SQLite").await;
    browser.click("How to set it up").await;
    browser.see("rapport serve --smtp-url").await;
    browser.close();
}
