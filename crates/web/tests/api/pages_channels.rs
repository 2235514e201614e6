//! The channel pages: the results of each code, and the actions of admins on channels and codes.

use std::time::Duration;

use rapport_app::channel_total::{Count, due, keep, step};
use rapport_domain::member::Role;
use rapport_store::{channel, channel_total};
use serde_json::json;

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::Person;

on_both_engines!(
    a_company_without_channels_sees_an_explanation,
    channels_show_what_each_code_brought_per_currency,
    figures_are_counted_in_steps_and_not_too_often,
    values_beyond_an_integer_are_still_shown,
    a_channel_is_created_renamed_and_deleted,
    a_channel_with_accounts_cannot_be_deleted,
    codes_are_added_archived_restored_and_deleted,
    members_see_and_change_nothing,
    many_channels_come_in_pages,
    a_channel_of_another_company_is_not_found,
);

/// Counts like the background job.
async fn count(acme: &Tenant) {
    let (app, company) = (acme.company.app(), acme.company.id());
    let mut counting = Count::default();
    while step(app, company, &mut counting).await.expect("a step") {}
    keep(app, company, counting, Duration::ZERO).await.expect("kept");
}

async fn a_company_without_channels_sees_an_explanation(acme: Tenant) {
    let page = Person::of(&acme, Role::Admin).see("/channels").await.expect(200);
    page.says("No channels yet").says("New channel");
    let page = Person::of(&acme, Role::Member).see("/channels").await.expect(200);
    page.says("No channels yet").says_not("New channel");
}

async fn channels_show_what_each_code_brought_per_currency(acme: Tenant) {
    let fair = acme.company.channel("Fair <b>", &["SPRING", "AUTUMN"]);
    acme.company.channel("Quiet", &["NOBODY"]);
    let ana = Person::of(&acme, Role::Member);
    ana.see("/channels").await.expect(200).says("are being counted for the first time");
    for (n, code, value, currency) in [
        (1, "spring", "1000", "EUR"),
        (2, "SPRING", "500.50", "EUR"),
        (3, "spring", "7", "USD"),
        (4, "autumn", "", ""),
    ] {
        let mut body = json!({"imported_id": format!("crm-{n}"), "promo_code": code});
        if !value.is_empty() {
            body["captured_value"] = json!(value);
            body["captured_value_currency"] = json!(currency);
        }
        acme.account(body).await;
    }
    count(&acme).await;
    let page = ana
        .see("/channels")
        .await
        .expect(200)
        .says("Accounts and values as of <time")
        .says("Fair &#60;b&#62;");
    let link = format!(
        "<a href=\"/accounts?channel={}\" aria-label=\"4 accounts from Fair &#60;b&#62;\">4</a>",
        fair.id
    );
    let spring = "<code>SPRING</code></td><td class=\"n\">3</td><td class=\"n values\">";
    let sum = "$7.00 <span class=\"others\">+ €1,500.50</span></button>";
    let autumn = "<code>AUTUMN</code></td><td class=\"n\">1</td><td class=\"n values\"><span class=\"faint\">–</span></td>";
    page.says(&link)
        .says(spring)
        .says(sum)
        .says(autumn)
        .says("<code>NOBODY</code></td><td class=\"n\">0</td>");
    // A deleted code keeps its results.
    acme.delete(&format!("/api/channels/{}/codes/autumn/", fair.id)).send().await;
    let page = ana.see(&format!("/channels/{}", fair.id)).await.expect(200);
    page.says("<code>AUTUMN</code> <span class=\"badge\">deleted</span></td><td class=\"n\" data-label=\"Accounts\">1</td>")
        .says("€1,500.50");
    // With a rate, it is one sum.
    let rate = json!({"currency": "EUR", "valid_from": "2026-01-01", "rate": "1.2"});
    acme.post("/api/exchange-rates/").json(&rate).send().await.expect(201);
    for path in ["/channels".to_owned(), format!("/channels/{}", fair.id)] {
        let page = ana.see(&path).await.expect(200);
        page.says(">$1,807.60</button>").says("€1,500.50 = $1,800.60").says_not("class=\"others\"");
    }
}

async fn figures_are_counted_in_steps_and_not_too_often(acme: Server) {
    acme.app.channel("Fair", &["FAIR"]);
    acme.app.channel("Web", &["WEB"]);
    // More accounts than one step counts, each counted once.
    let many = 2_100;
    for n in 0..many {
        acme.app.upsert(
            json!({"imported_id": format!("crm-{n}"), "promo_code": if n % 2 == 0 { "fair" } else { "web" }}),
        );
    }
    let (app, company) = (acme.app.app(), acme.app.id());
    assert_eq!(due(app).await.unwrap(), [company]);
    let mut counting = Count::default();
    assert!(step(app, company, &mut counting).await.unwrap(), "there is more to count");
    assert!(!step(app, company, &mut counting).await.unwrap(), "everything is counted");
    keep(app, company, counting, Duration::from_secs(2)).await.unwrap();
    let counted =
        || acme.app.read(channel_total::all).into_iter().map(|total| total.accounts).collect::<Vec<_>>();
    assert_eq!(counted(), [many / 2, many / 2]);
    // It took two seconds, so it doesn't run again within a hundred seconds.
    acme.app.clock().advance_seconds(99);
    assert!(due(app).await.unwrap().is_empty());
    acme.app.clock().advance_seconds(1);
    assert_eq!(due(app).await.unwrap(), [company]);
    // Unchanged figures are not written again immediately.
    count(&acme).await;
    let at = acme.app.read(channel_total::counted).unwrap().at;
    acme.app.clock().advance_seconds(10);
    count(&acme).await;
    assert_eq!(acme.app.read(channel_total::counted).unwrap().at, at);
    acme.app.upsert(json!({"imported_id": "another", "promo_code": "fair"}));
    count(&acme).await;
    assert_eq!(counted(), [many / 2 + 1, many / 2]);
    assert!(acme.app.read(channel_total::counted).unwrap().at > at);
}

async fn values_beyond_an_integer_are_still_shown(acme: Tenant) {
    acme.company.channel("Fair", &["FAIR"]);
    for n in 0..20 {
        let body = json!({
            "imported_id": format!("crm-{n}"), "promo_code": "fair", "captured_value": "99999999999999.9999",
            "captured_value_currency": "EUR",
        });
        acme.account(body).await;
    }
    count(&acme).await;
    Person::of(&acme, Role::Member).see("/channels").await.expect(200).says("€1,999,999,999,999,999.998");
}

async fn a_channel_is_created_renamed_and_deleted(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let path = ana.send("/channels", &[("name", " Spring fair ")]).await.leads_to("/channels/chn_");
    ana.see(&path).await.expect(200).says("<h1><bdi>Spring fair</bdi></h1>").says("No codes yet");
    // A refused form keeps its values and creates nothing.
    let before = acme.contents();
    let refused = ana.send("/channels", &[("name", "SPRING FAIR")]).await.expect(422);
    refused
        .says("Another channel already has this name.")
        .says("value=\"SPRING FAIR\"")
        .says("class=\"menu\" open");
    ana.send("/channels", &[("name", "")]).await.expect(422).says("Is required.");
    assert_eq!(acme.contents(), before);
    ana.send(&format!("{path}/rename"), &[("name", "Autumn fair")]).await.leads_to(&path);
    ana.see("/channels").await.says("Autumn fair").says_not("Spring fair");
    acme.company.channel("Other", &[]);
    let refused = ana.send(&format!("{path}/rename"), &[("name", "other")]).await.expect(422);
    refused.says("channel already has this name").says("value=\"other\"");
    ana.send(&format!("{path}/delete"), &[]).await.leads_to("/channels");
    ana.see(&path).await.expect(404);
    ana.see("/channels").await.says_not("Autumn fair").says("Other");
}

async fn a_channel_with_accounts_cannot_be_deleted(acme: Tenant) {
    let fair = acme.company.channel("Fair", &["FAIR"]);
    acme.account(json!({"imported_id": "crm-1", "promo_code": "fair"})).await;
    let ana = Person::of(&acme, Role::Admin);
    let refused = ana.send(&format!("/channels/{}/delete", fair.id), &[]).await.expect(422);
    refused.says("Accounts are attributed to this channel; archive its codes instead.");
    assert_eq!(acme.company.read(channel::list).len(), 1);
}

async fn codes_are_added_archived_restored_and_deleted(acme: Tenant) {
    let fair = acme.company.channel("Fair", &[]);
    let ana = Person::of(&acme, Role::Admin);
    let path = format!("/channels/{}", fair.id);
    let codes = || {
        let codes = acme.company.read(move |snapshot| channel::codes(snapshot, fair.id));
        codes
            .into_iter()
            .map(|code| (code.code.as_str().to_owned(), code.archived_at.is_some()))
            .collect::<Vec<_>>()
    };
    let added = ana.send(&format!("{path}/codes"), &[("code", "Spring_26")]).await;
    added.leads_to(&path);
    assert_eq!(codes(), [("Spring_26".to_owned(), false)]);
    for (code, words) in [
        ("has space", "Must contain only letters"),
        ("", "Is required."),
        ("SPRING_26", "This promo code already exists."),
    ] {
        let refused = ana.send(&format!("{path}/codes"), &[("code", code)]).await.expect(422);
        refused.says(words).says(&format!("value=\"{code}\""));
    }
    assert_eq!(codes().len(), 1);
    let archive = |archived| [("code", "spring_26"), ("archived", archived)];
    let archived = ana.send(&format!("{path}/codes/archive"), &archive("true")).await;
    archived.leads_to(&path);
    assert!(archived.flash().contains("/codes/archive"), "with its undo: {}", archived.flash());
    assert_eq!(codes(), [("Spring_26".to_owned(), true)]);
    ana.see(&path).await.says("<span class=\"badge\">archived</span>").says("Restore");
    // Undoing the deletion restores it.
    let deleted =
        ana.send(&format!("{path}/codes/delete"), &[("code", "Spring_26"), ("archived", "true")]).await;
    let flash: serde_json::Value = serde_json::from_str(&deleted.flash()).unwrap();
    assert_eq!(codes(), []);
    let back: Vec<(String, String)> = serde_json::from_value(flash["undo"]["fields"].clone()).unwrap();
    let back: Vec<(&str, &str)> = back.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    ana.send(flash["undo"]["action"].as_str().unwrap(), &back).await.leads_to(&path);
    assert_eq!(codes(), [("Spring_26".to_owned(), true)]);
    ana.send(&format!("{path}/codes/archive"), &archive("false")).await.leads_to(&path);
    assert_eq!(codes(), [("Spring_26".to_owned(), false)]);
    ana.send(&format!("{path}/codes/delete"), &[("code", "nothing")]).await.expect(404);
}

async fn members_see_and_change_nothing(acme: Tenant) {
    let fair = acme.company.channel("Fair", &["FAIR"]);
    let ben = Person::of(&acme, Role::Member);
    let path = format!("/channels/{}", fair.id);
    let page = ben.see(&path).await.expect(200).says("FAIR");
    page.says_not("Rename").says_not(&format!("action=\"{path}")).says_not("Add promo code");
    let before = acme.contents();
    ben.send("/channels", &[("name", "Mine")]).await.expect(403);
    ben.send("/channels", &[("name", "")]).await.expect(403);
    ben.send(&format!("{path}/rename"), &[("name", "Mine")]).await.expect(403);
    ben.send(&format!("{path}/delete"), &[]).await.expect(403);
    ben.send(&format!("{path}/codes"), &[("code", "MINE")]).await.expect(403);
    ben.send(&format!("{path}/codes/archive"), &[("code", "FAIR"), ("archived", "true")]).await.expect(403);
    ben.send(&format!("{path}/codes/delete"), &[("code", "FAIR")]).await.expect(403);
    assert_eq!(acme.contents(), before);
}

async fn many_channels_come_in_pages(acme: Tenant) {
    for n in 0..30 {
        let codes: Vec<String> =
            (0..if n == 0 { 9 } else { 3 }).map(|code| format!("CODE-{n:02}-{code}")).collect();
        acme.company
            .channel(&format!("Channel {n:02}"), &codes.iter().map(String::as_str).collect::<Vec<_>>());
    }
    count(&acme).await;
    let ana = Person::of(&acme, Role::Admin);
    let first =
        ana.see("/channels").await.expect(200).says("Channel 24").says_not("Channel 25").says("3 more");
    assert!(first.0.text().len() < 100_000, "{}", first.0.text().len());
    let next = first.0.text().split("href=\"/channels?after=").nth(1).unwrap().split('"').next().unwrap();
    let second = ana.see(&format!("/channels?after={next}")).await.expect(200);
    second
        .says("Channel 25")
        .says("Channel 29")
        .says("First page")
        .says_not("Channel 24")
        .says_not("Next page");
}

async fn a_channel_of_another_company_is_not_found(acme: Tenant) {
    let fair = acme.neighbour().company.channel("Fair", &["FAIR"]);
    let ana = Person::of(&acme, Role::Admin);
    ana.see(&format!("/channels/{}", fair.id)).await.expect(404);
    ana.send(&format!("/channels/{}/rename", fair.id), &[("name", "Mine")]).await.expect(404);
    ana.see("/channels/nonsense").await.expect(404);
}
