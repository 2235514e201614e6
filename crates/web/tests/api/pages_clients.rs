//! The Clients page: overdue clients and the actions on them.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, id_of, on_both_engines, path_of};
use crate::person::{Person, Seen};

on_both_engines!(
    the_most_overdue_come_first_with_their_days,
    each_tab_lists_its_own_clients,
    empty_tabs_say_what_to_do,
    contact_takes_a_client_off_the_list,
    a_snooze_moves_a_client_to_its_tab,
    a_long_list_has_pages_and_a_page_stays_small,
    an_unknown_tab_is_named,
);

/// A client who was contacted this many days ago.
async fn client(server: &Server, imported_id: &str, contacted: i64) -> Value {
    let account = server.account(json!({"imported_id": imported_id, "status": "customer"})).await;
    let at = server.app.clock().now().plus_days(-contacted).to_string();
    let body = json!({"kind": "call", "occurred_at": at});
    server.post(&format!("{}contacts/", path_of(&account))).json(&body).send().await.expect(201);
    account
}

/// The names in the table, in order.
fn names(seen: &Seen) -> Vec<String> {
    let rows = seen.0.text().split("<tr data-href=").skip(1);
    let name =
        |row: &str| row.split("<bdi>").nth(1).and_then(|rest| rest.split('<').next()).map(str::to_owned);
    rows.filter_map(name).collect()
}

async fn the_most_overdue_come_first_with_their_days(acme: Server) {
    for (name, days) in [("late", 45), ("latest", 80), ("calm", 3), ("just", 42)] {
        client(&acme, name, days).await;
    }
    let ana = Person::of(&acme, Role::Member);
    let seen = ana.see("/clients").await.expect(200);
    assert_eq!(names(&seen), ["latest", "late", "just"]);
    seen.says("<span class=\"badge bad\" title=\"Days overdue\">38 days</span>")
        .says("<span class=\"badge warn\" title=\"Days overdue\">3 days</span>")
        .says("Under a day")
        .says("Last contact: call by a colleague, 17 October 2025")
        .says("every 42 days")
        .says("Overdue<span>3</span>")
        .says("All tracked<span>4</span>")
        .says("data-key=\"c\"")
        .says("data-key=\"s\"")
        .says("id=\"clients\" data-live");
}

async fn each_tab_lists_its_own_clients(acme: Server) {
    client(&acme, "late", 50).await;
    client(&acme, "soon", 40).await;
    client(&acme, "calm", 3).await;
    let asleep = client(&acme, "asleep", 60).await;
    let body = json!({"snoozed_until": "2026-03-01"});
    acme.patch(&path_of(&asleep)).json(&body).send().await.expect(200);
    let ana = Person::of(&acme, Role::Member);
    let table: [(&str, &[&str]); 4] = [
        ("overdue", &["late"]),
        ("due_soon", &["soon"]),
        ("snoozed", &["asleep"]),
        ("tracked", &["asleep", "late", "soon", "calm"]),
    ];
    for (tab, expected) in table {
        let seen = ana.see(&format!("/clients?tab={tab}")).await.expect(200);
        assert_eq!(names(&seen), expected, "{tab}");
        seen.says(&format!("href=\"/clients?tab={tab}\" aria-current=\"page\""));
    }
    ana.see("/clients?tab=snoozed").await.says("until 1 Mar 2026").says("End snooze");
}

async fn empty_tabs_say_what_to_do(acme: Server) {
    let (ana, admin) = (Person::of(&acme, Role::Member), Person::of(&acme, Role::Admin));
    ana.see("/clients")
        .await
        .says("No clients yet")
        .says("Clients are accounts in Customer and In trial.")
        .says_not("/settings/cadence");
    admin.see("/clients").await.says("href=\"/settings/cadence\"");
    client(&acme, "calm", 3).await;
    ana.see("/clients").await.says("Nobody is overdue");
    ana.see("/clients?tab=due_soon").await.says("Nobody is due within 7 days");
    ana.see("/clients?tab=snoozed").await.says("Nobody is snoozed");
}

async fn contact_takes_a_client_off_the_list(acme: Server) {
    let account = client(&acme, "late", 50).await;
    let ana = Person::of(&acme, Role::Member);
    let form = format!("/accounts/{}/contacts", id_of(&account));
    ana.see("/clients").await.says(&format!("action=\"{form}\"")).says("value=\"/clients?tab=overdue\"");
    let logged = ana.send(&form, &[("kind", "call"), ("next", "/clients?tab=overdue")]).await;
    assert_eq!(logged.leads_to("/clients"), "/clients?tab=overdue");
    assert!(logged.flash().contains("Contact with late logged"), "{}", logged.flash());
    ana.see("/clients").await.says("Nobody is overdue").says("Overdue<span>0</span>");
}

async fn a_snooze_moves_a_client_to_its_tab(acme: Server) {
    let account = client(&acme, "late", 50).await;
    let ana = Person::of(&acme, Role::Member);
    let form = format!("/accounts/{}/snooze", id_of(&account));
    let fields = [("snoozed_until", "2026-02-01"), ("next", "/clients?tab=overdue")];
    ana.send(&form, &fields).await.leads_to("/clients?tab=overdue");
    assert_eq!(names(&ana.see("/clients").await), [""; 0]);
    assert_eq!(names(&ana.see("/clients?tab=snoozed").await), ["late"]);
    ana.send(&form, &[("end", "yes"), ("next", "/clients?tab=snoozed")])
        .await
        .leads_to("/clients?tab=snoozed");
    assert_eq!(names(&ana.see("/clients").await), ["late"]);
}

async fn a_long_list_has_pages_and_a_page_stays_small(acme: Server) {
    const MAX_BYTES: usize = 100_000;
    for number in 0..60 {
        let body = json!({
            "imported_id": format!("crm-{number}"), "name": format!("A client whose name is rather long, number {number}"),
            "status": "customer", "captured_value": "48000.00",
        });
        acme.account(body).await;
        acme.accept(json!({"imported_id": format!("crm-{number}"), "kind": "app_opened"})).await;
    }
    acme.app.clock().advance_days(50);
    let ana = Person::of(&acme, Role::Member);
    let first = ana.see("/clients").await.expect(200);
    assert_eq!(names(&first).len(), 50);
    let size = first.0.text().len();
    assert!(size < MAX_BYTES, "a full page has {size} bytes");
    let next =
        first.0.text().split("href=\"").find(|rest| rest.contains(">Next<") && rest.starts_with("/clients"));
    let next = next.unwrap().split('"').next().unwrap().replace("&#38;", "&");
    let second = ana.see(&next).await.expect(200);
    assert_eq!(names(&second).len(), 10);
    let all: std::collections::BTreeSet<String> = names(&first).into_iter().chain(names(&second)).collect();
    assert_eq!(all.len(), 60, "each once");
    second.says("First page").says_not(">Next<");
}

async fn an_unknown_tab_is_named(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    ana.see("/clients?tab=late").await.expect(422).says("Tab must be one of");
    ana.see("/clients?cursor=nonsense").await.expect(422).says("Cursor");
    ana.see("/clients?tab=").await.expect(200).says("tab=overdue\" aria-current=\"page\"");
    assert_eq!(acme.get("/clients").without_credential().send().await.status, 303);
}
