//! The board: accounts by stage, moves by form, and columns with their own paging.

use rapport_domain::member::Role;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, on_both_engines, path_of};
use crate::person::{Person, Seen};

on_both_engines!(
    columns_have_their_accounts_counts_and_values,
    a_card_shows_what_matters_in_its_stage,
    a_stage_without_rates_shows_one_currency_and_offers_the_others,
    a_stage_shows_the_converted_sum_and_what_has_no_rate,
    a_move_counts_as_an_operators_and_can_be_undone,
    a_move_sent_twice_counts_once,
    an_invalid_move_is_refused,
    columns_page_on_their_own,
    a_collapsed_column_stays_open_while_someone_works_in_it,
    a_full_board_is_small_enough,
);

async fn columns_have_their_accounts_counts_and_values(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    ana.see("/pipeline").await.expect(200).says("No accounts yet").says("href=\"/accounts/new\"");
    let value = json!({"imported_id": "a", "name": "Nordlys", "status": "in_trial", "captured_value": "48000",
                       "captured_value_currency": "EUR"});
    acme.account(value).await;
    acme.account(json!({"imported_id": "b", "name": "Gone", "status": "do_not_contact"})).await;
    let page = ana.see("/pipeline").await.expect(200);
    let text = page.0.text().to_owned();
    let column = |status: &str| {
        let start = text.find(&format!("id=\"stage-{status}\"")).expect("a column");
        let rest = &text[start..];
        rest[..rest.find("</section>").or_else(|| rest.find("</details>\n")).unwrap_or(rest.len())].to_owned()
    };
    let trial = column("in_trial");
    assert!(
        trial.contains("Nordlys") && trial.contains("€48,000.00") && trial.contains("never seen"),
        "{trial}"
    );
    assert!(trial.contains("aria-label=\"1 account, In trial\">1</a>"), "{trial}");
    assert!(!column("prospect").contains("Nordlys"));
    let page = page.says_not("No accounts yet");
    page.says("<details class=\"column folded\" id=\"stage-do_not_contact\"").says("Gone");
}

/// The card of an account.
fn card(page: &Seen, account: &Value) -> String {
    let text = page.0.text();
    let start = text.find(&format!("<article class=\"item\" id=\"{}\"", id(account))).expect("a card");
    text[start..].split("</article>").next().expect("its end").to_owned()
}

async fn a_card_shows_what_matters_in_its_stage(server: Server) {
    let ana = Person::of(&server, Role::Member);
    let fair = server.post("/api/channels/").json(&json!({"name": "Spring fair"})).send().await.expect(201);
    let codes = format!("/api/channels/{}/codes/", fair["id"].as_str().expect("an id"));
    server.post(&codes).json(&json!({"code": "SPRING"})).send().await.expect(201);
    let body = |n: &str, status: &str| json!({"imported_id": n, "status": status, "promo_code": "SPRING"});
    let early = server.account(body("a", "contacted")).await;
    let trial = server.account(body("b", "in_trial")).await;
    let page = ana.see("/pipeline").await.expect(200);
    for account in [&early, &trial] {
        let card = card(&page, account);
        for text in ["new in stage", "no contact yet", "<bdi>Spring fair</bdi>"] {
            assert!(card.contains(text), "{text}: {card}");
        }
    }
    // Nobody uses the product before a trial.
    assert!(card(&page, &trial).contains("never seen"));
    assert!(!card(&page, &early).contains("seen"));

    server.app.clock().advance_days(3);
    let contacts = format!("{}contacts/", path_of(&early));
    server.post(&contacts).json(&json!({"kind": "call"})).send().await.expect(201);
    server.accept(json!({"imported_id": "b", "kind": "app_opened"})).await;
    server.app.clock().advance_days(2);
    let page = ana.see("/pipeline").await.expect(200);
    let (early_card, trial_card) = (card(&page, &early), card(&page, &trial));
    for text in ["5 days in stage", "<span>contact <time", ">2 days ago</time>"] {
        assert!(early_card.contains(text), "{text}: {early_card}");
    }
    assert!(trial_card.contains("<span>seen <time") && trial_card.contains("no contact yet"), "{trial_card}");
    // A move starts the time in the stage again.
    let path = format!("/pipeline/{}/move", id(&early));
    ana.send(&path, &[("status", "in_negotiation")]).await.leads_to("/pipeline");
    let page = ana.see("/pipeline").await.expect(200);
    assert!(card(&page, &early).contains("new in stage"), "{}", card(&page, &early));
}

async fn a_stage_without_rates_shows_one_currency_and_offers_the_others(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    for (n, currency) in ["CHF", "EUR", "USD"].into_iter().enumerate() {
        let id = format!("{n}");
        acme.account(
            json!({"imported_id": id, "captured_value": "1000", "captured_value_currency": currency}),
        )
        .await;
    }
    let page = ana.see("/pipeline").await.expect(200);
    let head = page.0.text().split("id=\"head-prospect\"").nth(1).expect("a header");
    let head = head.split("</header>").next().expect("its end");
    // The company's own currency comes first.
    let (shown, tip) = head.split_once("role=\"tooltip\" id=\"others-prospect\"").expect("a tooltip");
    assert!(shown.contains("aria-describedby=\"others-prospect\">$1,000.00 "), "{head}");
    assert!(shown.contains("+2<span class=\"sr\"> other currencies"), "{head}");
    for other in ["CHF\u{a0}1,000.00", "€1,000.00"] {
        assert!(
            tip.contains(&format!("<span>{other}<span class=\"rate\">no exchange rate</span>")),
            "{head}"
        );
    }
}

async fn a_stage_shows_the_converted_sum_and_what_has_no_rate(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    for (n, currency) in ["CHF", "EUR", "USD"].into_iter().enumerate() {
        for status in ["prospect", "lost"] {
            let id = format!("{n} {status}");
            acme.account(json!({"imported_id": id, "status": status, "captured_value": "1000",
                                "captured_value_currency": currency}))
                .await;
        }
    }
    let rate = json!({"currency": "CHF", "valid_from": "2026-01-01", "rate": "1.1"});
    acme.post("/api/exchange-rates/").json(&rate).send().await.expect(201);
    let page = ana.see("/pipeline").await.expect(200);
    let part = |from: &str, to: &str| {
        let rest = page.0.text().split(from).nth(1).expect("a head");
        rest.split(to).next().expect("its end").to_owned()
    };
    let head = part("id=\"head-prospect\"", "</header>");
    let (shown, tip) = head.split_once("role=\"tooltip\"").expect("a tooltip");
    assert!(shown.contains(">$2,100.00 <span class=\"others\">+ €1,000.00</span></button>"), "{head}");
    let converted =
        "CHF\u{a0}1,000.00 = $1,100.00<span class=\"rate\">1\u{a0}CHF = 1.1\u{a0}USD since 1 Jan 2026</span>";
    for line in ["<span>$1,000.00</span>", converted, "€1,000.00<span class=\"rate\">no exchange rate</span>"]
    {
        assert!(tip.contains(line), "{line}: {head}");
    }
    // A folded stage says the same, and its parts are inside.
    let summary = part("id=\"head-lost\"", "</summary>");
    assert!(summary.contains("$2,100.00 <span class=\"others\">+ €1,000.00</span>"), "{summary}");
    assert!(!summary.contains("<button"), "{summary}");
    assert!(part("id=\"worth-lost\"", "</p>").contains(converted));
}

fn id(account: &Value) -> String {
    account["id"].as_str().expect("an id").to_owned()
}

/// The action and the fields of the undo in a flash.
fn undo(seen: &Seen) -> (String, String) {
    let flash: Value = serde_json::from_str(&seen.flash()).expect("a flash");
    let undo = &flash["undo"];
    assert_eq!(undo["fields"][0][0], json!("status"), "{flash}");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (text(&undo["action"]), text(&undo["fields"][0][1]))
}

async fn a_move_counts_as_an_operators_and_can_be_undone(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let account = acme.account(json!({"imported_id": "a", "name": "Nordlys"})).await;
    let path = format!("/pipeline/{}/move", id(&account));
    let page = ana.see("/pipeline").await;
    page.says(&format!("action=\"{path}\" data-move")).says("<option value=\"lost\">Lost");
    let moved = ana.send(&path, &[("status", "lost")]).await;
    moved.leads_to("/pipeline");
    assert!(moved.flash().contains("Moved Nordlys to Lost."), "{}", moved.flash());
    let history = acme.history(&account).await;
    assert_eq!((&history[1]["from"], &history[1]["to"]), (&json!("prospect"), &json!("lost")));
    assert_eq!(
        (&history[1]["source"], &history[1]["actor"]["name"]),
        (&json!("operator"), &json!("A member"))
    );
    assert_eq!(acme.events(&account).last().expect("an event")["type"], json!("account.status_changed"));
    let (action, status) = undo(&moved);
    assert_eq!((action.as_str(), status.as_str()), (path.as_str(), "prospect"));
    ana.send(&action, &[("status", &status)]).await.leads_to("/pipeline");
    assert_eq!(acme.shown("a").await["status"], json!("prospect"));
    // A move to the current stage does nothing, and there is nothing to undo.
    let same = ana.send(&path, &[("status", "prospect")]).await;
    assert!(same.flash().contains("is already in Prospect") && same.flash().contains("\"undo\":null"));
    assert_eq!(acme.history(&account).await.len(), 3);
}

async fn a_move_sent_twice_counts_once(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let account = acme.account(json!({"imported_id": "a"})).await;
    let path = format!("/pipeline/{}/move", id(&account));
    let form = ana.form();
    ana.send_form(&path, form, &[("status", "lost")]).await.leads_to("/pipeline");
    ana.send_form(&path, form, &[("status", "customer")]).await.leads_to("/pipeline");
    assert_eq!(acme.shown("a").await["status"], json!("lost"));
}

async fn an_invalid_move_is_refused(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let account = acme.account(json!({"imported_id": "a"})).await;
    let path = format!("/pipeline/{}/move", id(&account));
    ana.send(&path, &[("status", "won")]).await.expect(422).says("Status must be one of");
    ana.send(&path, &[]).await.expect(422);
    assert_eq!(acme.history(&account).await.len(), 1);
    let foreign = acme.neighbour().account(json!({"imported_id": "a"})).await;
    ana.send(&format!("/pipeline/{}/move", id(&foreign)), &[("status", "lost")]).await.expect(404);
    ana.send("/pipeline/nonsense/move", &[("status", "lost")]).await.expect(404);
}

async fn columns_page_on_their_own(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    for n in 1..=15 {
        acme.account(json!({"imported_id": format!("p{n}"), "name": format!("Prospect {n:02}")})).await;
    }
    acme.account(json!({"imported_id": "c", "name": "The customer", "status": "customer"})).await;
    let page = ana
        .see("/pipeline")
        .await
        .expect(200)
        .says("Prospect 15")
        .says("Prospect 02")
        .says_not("Prospect 01");
    let text = page.0.text();
    let more =
        text.split("href=\"").find(|rest| rest.starts_with("/pipeline?after_prospect=")).expect("more");
    let more = more.split('"').next().expect("an address");
    let query = more.split(['?', '#']).nth(1).expect("a query");
    let second = ana.see(&format!("/pipeline?{query}")).await.expect(200);
    let second = second
        .says("Prospect 01")
        .says_not("Prospect 15")
        .says("The customer")
        .says(">First</a>")
        .says_not(">More<span class=\"sr\">");
    // A move from that page returns to it.
    let account = acme.shown("p1").await;
    let action = format!("/pipeline/{}/move?{query}", id(&account));
    let second = second.says(&format!("action=\"{action}\""));
    drop(second);
    let moved = ana.send(&action, &[("status", "contacted")]).await;
    assert_eq!(moved.leads_to("/pipeline"), format!("/pipeline?{query}"));
    ana.see("/pipeline?after_prospect=nonsense").await.expect(200).says("Prospect 15");
}

async fn a_collapsed_column_stays_open_while_someone_works_in_it(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    let account = acme.account(json!({"imported_id": "a", "status": "lost"})).await;
    let closed = "id=\"stage-lost\" data-drop=\"lost\">";
    ana.see("/pipeline").await.expect(200).says(closed);
    let path = format!("/pipeline/{}/move", id(&account));
    let moved = ana.send(&path, &[("status", "prospect")]).await;
    assert_eq!(moved.leads_to("/pipeline"), "/pipeline?open=lost");
    assert_eq!(undo(&moved), (format!("{path}?open=lost"), "lost".to_owned()));
    let page = ana.see("/pipeline?open=lost").await.expect(200);
    page.says("id=\"stage-lost\" data-drop=\"lost\" open>").says(&format!("action=\"{path}?open=lost\""));
    ana.see("/pipeline?open=customer").await.expect(200).says(closed).says_not("open=customer");
}

async fn a_full_board_is_small_enough(acme: Tenant) {
    for status in
        ["prospect", "contacted", "in_negotiation", "in_trial", "customer", "lost", "do_not_contact"]
    {
        for n in 1..=17 {
            let name = format!("A company with a name of usual length {n}");
            let body = json!({"imported_id": format!("{status}-{n}"), "name": name, "status": status,
                              "captured_value": "48000", "captured_value_currency": "EUR"});
            acme.account(body).await;
            acme.accept(json!({"imported_id": format!("{status}-{n}"), "kind": "app_opened"})).await;
        }
    }
    let page = Person::of(&acme, Role::Admin).see("/pipeline").await.expect(200);
    let bytes = page.0.text().len();
    assert!(bytes < 100_000, "{bytes} bytes");
    assert_eq!(page.0.text().matches("<article").count(), 5 * 14 + 2 * 8);
}
