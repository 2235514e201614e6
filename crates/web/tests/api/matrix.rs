//! Every API operation and every page with every role, under everything that a company can grant. What happens is
//! compared with the rule that the route declares: an operation as the scope of its token in the OpenAPI document, a
//! page in the table of page rules. A route that declares no rule fails a test beside that table or document.

use std::collections::BTreeSet;

use rapport_domain::credential::{Kind, issue};
use rapport_domain::id::{
    AccountId, CampaignId, ChannelId, CompanyId, ContactId, ConversationId, CorrectionId, CredentialId,
    DeliveryId, ExchangeRateId, ImportId, InvitationId, MessageId, NoteId, PasskeyId, PersonId, RedeliveryId,
    SessionId, WebhookId,
};
use rapport_domain::member::Role;
use rapport_domain::right::{Grants, Right};
use rapport_web::{PAGE_RULES, PageRule};
use serde_json::{Value, json};

use crate::harness::{Tenant, id_of, on_both_engines};
use crate::openapi::{document, operations};
use crate::person::Person;

on_both_engines! {
    every_operation_follows_its_rule,
    every_page_follows_its_rule,
    pages_for_everyone_refuse_no_role,
    a_session_that_lacks_its_second_factor_reaches_only_what_sets_it_up,
    pages_offer_nothing_that_their_visitor_may_not_do,
    pages_offer_what_was_granted,
}

const NOBODY: [u8; 16] = [7; 16];
/// Who leaves is logged out. Each time, somebody else does.
const LEAVE: &str = "/profile/leave";

fn grant(acme: &Tenant, grants: Grants) {
    let Grants { export, delete } = grants;
    acme.company.set(json!({ "export_role": export.as_str(), "delete_role": delete.as_str() }));
}

async fn every_operation_follows_its_rule(acme: Tenant) {
    let document = document(&acme).await;
    let id = AccountId::from_bytes(NOBODY).to_string();
    let tokens = Role::ALL.map(|role| (role, acme.token_of(role)));
    let (mut rights, mut calls) = (BTreeSet::new(), 0);
    for grants in Grants::ALL {
        grant(&acme, grants);
        for (path, method, operation) in operations(&document) {
            let Some(scopes) = operation["security"][0]["token"].as_array() else { continue };
            let [scope] = scopes.as_slice() else { panic!("{method} {path} must declare one right") };
            let right =
                scope.as_str().and_then(Right::parse).unwrap_or_else(|| panic!("{scope} is no right"));
            let example = path.replace("{id}", &id).replace("{code}", "x").replace("{week}", "2026-W03");
            let example = example
                .replace("{address}", "a@b.example")
                .replace("{contact}", &ContactId::from_bytes(NOBODY).to_string())
                .replace("{message}", &MessageId::from_bytes(NOBODY).to_string())
                .replace("{note}", &NoteId::from_bytes(NOBODY).to_string())
                .replace("{correction}", &CorrectionId::from_bytes(NOBODY).to_string());
            for (role, token) in &tokens {
                let call = acme.request(&method.to_uppercase(), &example).token(token);
                let has_body = !matches!(method, "get" | "delete");
                let call = if has_body { call.json(&json!({ "nonsense": 1 })) } else { call };
                let answer = call.send().await;
                let is_refused = answer.status == 403;
                let place = format!("{method} {path} as {} with {grants:?}", role.as_str());
                assert_eq!(is_refused, !right.is_held_by(*role, grants), "{place}: {}", answer.status);
                assert_ne!(answer.status, 401, "{place}");
                if is_refused {
                    let problem = answer.expect_problem(403, "role_required");
                    assert_eq!(problem["detail"], json!(right.needed(grants)), "{place}");
                }
                calls += 1;
            }
            rights.insert(right.as_str());
        }
    }
    assert!(calls > 80 * Role::ALL.len() * Grants::ALL.len(), "{calls} calls");
    // People change themselves on pages only. Who may touch an owner or what others logged depends on what is touched.
    let elsewhere = [Right::Own, Right::Owners, Right::Correct].map(Right::as_str);
    let expected: BTreeSet<&str> = Right::ALL.map(Right::as_str).into_iter().collect();
    assert_eq!(rights, expected.into_iter().filter(|word| !elsewhere.contains(word)).collect());
}

/// An address of a route, of objects that don't exist. A visitor who may not use the route doesn't learn that.
fn example(route: &str) -> String {
    let kinds = [
        ("/settings/members/", PersonId::from_bytes(NOBODY).to_string()),
        ("/settings/invitations/", InvitationId::from_bytes(NOBODY).to_string()),
        ("/settings/currencies/", ExchangeRateId::from_bytes(NOBODY).to_string()),
        ("/settings/tokens/", CredentialId::from_bytes(NOBODY).to_string()),
        ("/profile/sessions/", SessionId::from_bytes(NOBODY).to_string()),
        ("/profile/passkeys/", PasskeyId::from_bytes(NOBODY).to_string()),
        ("/accounts/", AccountId::from_bytes(NOBODY).to_string()),
        ("/pipeline/", AccountId::from_bytes(NOBODY).to_string()),
        ("/campaigns/", CampaignId::from_bytes(NOBODY).to_string()),
        ("/channels/", ChannelId::from_bytes(NOBODY).to_string()),
        ("/imports/", ImportId::from_bytes(NOBODY).to_string()),
        ("/webhooks/", WebhookId::from_bytes(NOBODY).to_string()),
        ("/deliveries/", DeliveryId::from_bytes(NOBODY).to_string()),
        ("/redeliveries/", RedeliveryId::from_bytes(NOBODY).to_string()),
    ];
    let link = issue(Kind::AddressChange, CompanyId(1), [7; 20]);
    let id = kinds.into_iter().find(|(prefix, _)| route.starts_with(prefix)).map(|(_, id)| id);
    let path = route
        .replace("{id}", id.as_deref().unwrap_or("{id}"))
        .replace("{conversation}", &ConversationId::from_bytes(NOBODY).to_string())
        .replace("{entry}", &NoteId::from_bytes(NOBODY).to_string())
        .replace("{correction}", &CorrectionId::from_bytes(NOBODY).to_string())
        .replace("{week}", "2026-W03")
        .replace("{project}", "nobody")
        .replace("{secret}", "x")
        .replace("/email-change/{token}", &format!("/email-change/{}", link.text))
        .replace("{token}", "x");
    assert!(!path.contains('{'), "say what the id in {route} is");
    path
}

/// The routes with their rules, one for each method.
fn page_rules() -> impl Iterator<Item = (&'static str, &'static str, PageRule)> {
    let each = |(methods, route, rule): &(&'static str, &'static str, PageRule)| {
        let (route, rule) = (*route, *rule);
        methods.split(' ').map(move |method| (method, route, rule))
    };
    PAGE_RULES.iter().flat_map(each)
}

async fn every_page_follows_its_rule(acme: Tenant) {
    let people = Role::ALL.map(|role| (role, Person::of(&acme, role)));
    for grants in Grants::ALL {
        grant(&acme, grants);
        for (method, route, rule) in page_rules() {
            let PageRule::Right(right) = rule else { continue };
            for (role, person) in &people {
                let leaving = (route == LEAVE).then(|| Person::of(&acme, *role));
                let person = leaving.as_ref().unwrap_or(person);
                let answer = person.try_out(method, &example(route)).await;
                let place = format!("{method} {route} as {} with {grants:?}", role.as_str());
                assert_eq!(
                    answer.status == 403,
                    !right.is_held_by(*role, grants),
                    "{place}: {}",
                    answer.status
                );
                let is_logged_out = answer.header("location").is_some_and(|to| to.starts_with("/login"));
                assert_eq!(is_logged_out, leaving.is_some(), "{place}");
                assert!(answer.status < 500, "{place}: {}", answer.status);
            }
        }
    }
}

async fn pages_for_everyone_refuse_no_role(acme: Tenant) {
    for role in Role::ALL {
        for (method, route, _) in page_rules().filter(|(.., rule)| !matches!(rule, PageRule::Right(_))) {
            // One of them logs out.
            let answer = Person::of(&acme, role).try_out(method, &example(route)).await;
            assert!(answer.status != 403 && answer.status < 500, "{method} {route}: {}", answer.status);
        }
    }
}

async fn a_session_that_lacks_its_second_factor_reaches_only_what_sets_it_up(acme: Tenant) {
    let people = Role::ALL.map(|role| Person::of(&acme, role));
    acme.company.set(json!({ "second_factor_required": true }));
    for person in &people {
        for (method, route, rule) in page_rules().filter(|(.., rule)| *rule != PageRule::Open) {
            let answer = person.try_out(method, &example(route)).await;
            let is_led = answer.header("location").is_some_and(|to| to.starts_with("/login/second"));
            // A stream ends instead of leading to a page.
            let is_asked = is_led || (route, answer.status) == ("/live", 204);
            assert_eq!(is_asked, rule != PageRule::Login, "{method} {route}: {}", answer.status);
        }
    }
}

/// The rule of an address, and the route that serves it. Routes without an id come first.
fn rule_of(method: &str, path: &str) -> Option<(&'static str, PageRule)> {
    let fits = |route: &str| {
        let (mut route, mut path) = (route.split('/'), path.split('/'));
        loop {
            match (route.next(), path.next()) {
                (None, None) => return true,
                (Some(part), Some(given)) if part == given || part.starts_with('{') => {}
                _ => return false,
            }
        }
    };
    let mut found: Vec<_> = page_rules()
        .filter(|(its, route, _)| *its == method && fits(route))
        .map(|(_, route, rule)| (route, rule))
        .collect();
    found.sort_by_key(|(route, _)| route.contains('{'));
    found.first().copied()
}

/// What a page offers: links as GET, and forms with their method.
fn offers(html: &str) -> BTreeSet<(&'static str, String)> {
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        let value = rest.split('"').next().unwrap_or_default();
        Some(value.split(['?', '#', '&']).next().unwrap_or_default().to_owned())
    };
    let tags = html.split('<').skip(1).map(|tag| tag.split('>').next().unwrap_or_default());
    let offer = |tag: &str| {
        let is_post = tag.starts_with("form") && tag.contains("method=\"post\"");
        let to = attribute(tag, "href").or_else(|| attribute(tag, "action"))?;
        Some((if is_post { "POST" } else { "GET" }, to))
    };
    let ours = tags.filter_map(offer).filter(|(_, to)| to.starts_with('/'));
    ours.filter(|(_, to)| !["/api/", "/assets/", "/favicon"].iter().any(|begin| to.starts_with(begin)))
        .collect()
}

/// A company with one of everything that viewers and members see, and the addresses of their pages.
async fn furnished(acme: &Tenant) -> Vec<String> {
    let fair = acme.company.channel("Fair", &["FAIR"]).id;
    let body = json!({
        "imported_id": "crm-1", "name": "Nordlys", "status": "customer", "promo_code": "fair",
        "custom_fields": {"plan": "pro"},
    });
    let account = acme.account(body).await;
    let path = format!("/api/accounts/{}/", id_of(&account));
    let address = json!({"address": "ceo@nordlys.example"});
    acme.post(&format!("{path}addresses/")).json(&address).send().await.expect(201);
    let started = acme.post(&format!("{path}conversations/")).json(&json!({"subject": "Offer"})).send().await;
    let conversation = started.expect(201)["id"].as_str().expect("an id").to_owned();
    let contact = json!({"kind": "call", "occurred_at": "2020-01-01T00:00:00Z"});
    acme.post(&format!("{path}contacts/")).json(&contact).send().await.expect(201);
    let note = json!({"text": "Likes tea", "pinned": true});
    let note = acme.post(&format!("{path}notes/")).json(&note).send().await.expect(201);
    let note = note["id"].as_str().expect("an id").to_owned();
    acme.patch(&format!("{path}notes/{note}/"))
        .json(&json!({"text": "Likes coffee"}))
        .send()
        .await
        .expect(200);
    acme.post(&format!("{path}status/")).json(&json!({"status": "in_trial"})).send().await.expect(200);
    let campaign = json!({"name": "Spring", "goal": "announcement", "filters": {}});
    let campaign = acme.post("/api/campaigns/").json(&campaign).send().await.expect(201);
    let campaign = campaign["id"].as_str().expect("an id");
    let ana = Person::of(acme, Role::Member);
    ana.send("/accounts/views", &[("name", "Lost"), ("query", "status=lost")]).await.leads_to("/accounts");
    let account = id_of(&account);
    let fixed = [
        "/",
        "/pipeline",
        "/pipeline/moves",
        "/accounts",
        "/accounts?status=lost",
        "/accounts?q=nordlys",
        "/accounts/new",
        "/accounts/lookup",
        "/clients",
        "/clients?tab=tracked",
        "/campaigns",
        "/campaigns/new",
        "/channels",
        "/profile",
        "/companies",
    ];
    let mut pages: Vec<String> = fixed.map(str::to_owned).to_vec();
    pages.extend([
        format!("/accounts/{account}"),
        format!("/accounts/{account}?edit=details"),
        format!("/accounts/{account}?edit=field"),
        format!("/accounts/{account}?edit=entry&entry={note}"),
        format!("/accounts/{account}/conversations/{conversation}"),
        format!("/campaigns/{campaign}"),
        format!("/campaigns/{campaign}/edit"),
        format!("/channels/{fair}"),
    ]);
    pages
}

async fn pages_offer_nothing_that_their_visitor_may_not_do(acme: Tenant) {
    let empty = acme.neighbour();
    let pages = furnished(&acme).await;
    let before_anything = ["/", "/pipeline", "/accounts", "/clients", "/campaigns", "/channels"];
    let before_anything: Vec<String> = before_anything.map(str::to_owned).to_vec();
    for (company, pages) in [(&acme, &pages), (&empty, &before_anything)] {
        for grants in Grants::ALL {
            grant(company, grants);
            for role in Role::ALL {
                let person = Person::of(company, role);
                for page in pages {
                    let path = page.split('?').next().unwrap_or_default();
                    let may_see = matches!(rule_of("GET", path), Some((_, PageRule::Right(right)))
                        if right.is_held_by(role, grants));
                    if !may_see {
                        continue;
                    }
                    let seen = person.see(page).await.expect(200);
                    for (method, to) in offers(seen.0.text()) {
                        let Some((_, rule)) = rule_of(method, &to) else {
                            panic!("{page}: {method} {to} is no route")
                        };
                        let may = match rule {
                            PageRule::Open | PageRule::Login => true,
                            PageRule::Right(right) => right.is_held_by(role, grants),
                        };
                        assert!(may, "{page} offers {method} {to} to a {} with {grants:?}", role.as_str());
                    }
                }
            }
        }
    }
}

async fn pages_offer_what_was_granted(acme: Tenant) {
    let pages = furnished(&acme).await;
    let account = pages.iter().find(|page| page.starts_with("/accounts/acc_")).expect("an account");
    let campaign = pages.iter().find(|page| page.starts_with("/campaigns/cmp_")).expect("a campaign");
    let people = Role::ALL.map(|role| (role, Person::of(&acme, role)));
    for grants in Grants::ALL {
        grant(&acme, grants);
        for (role, person) in &people {
            let held = |right: Right| right.is_held_by(*role, grants);
            let expected = [
                ("/accounts", "GET", "/accounts/export".to_owned(), held(Right::Export)),
                ("/clients", "GET", "/accounts/export".to_owned(), held(Right::Export)),
                (campaign, "GET", format!("{campaign}/export"), held(Right::Export)),
                (account, "GET", format!("{account}/export"), held(Right::AccountData)),
                (account, "POST", format!("{account}/delete"), held(Right::Delete)),
                (account, "POST", format!("{account}/erase-payloads"), held(Right::Delete)),
                (account, "POST", format!("{account}/contacts"), held(Right::Work)),
                ("/accounts", "POST", "/accounts/bulk".to_owned(), held(Right::Work)),
                ("/accounts?q=nordlys", "POST", "/accounts/views".to_owned(), true),
                ("/accounts?status=lost", "POST", "/accounts/views/rename".to_owned(), held(Right::Work)),
                ("/", "GET", "/settings".to_owned(), held(Right::Settings)),
            ];
            for (page, method, to, is_offered) in expected {
                let offered = offers(person.see(page).await.expect(200).0.text());
                let place = format!("{page}: {method} {to} for a {} with {grants:?}", role.as_str());
                assert_eq!(offered.contains(&(method, to)), is_offered, "{place}");
            }
        }
    }
    let palette = async |role: Role| -> Vec<Value> {
        let found = Person::of(&acme, role).see("/palette?q=").await.expect(200).0.json();
        found.as_array().expect("hits").iter().map(|hit| hit["href"].clone()).collect()
    };
    let (viewer, member, admin) =
        (palette(Role::Viewer).await, palette(Role::Member).await, palette(Role::Admin).await);
    let has = |hits: &[Value], href: &str| hits.contains(&json!(href));
    assert!(has(&viewer, "/accounts") && !has(&viewer, "/accounts/new"));
    assert!(has(&member, "/accounts/new") && !has(&member, "/settings"));
    assert!(has(&admin, "/settings") && has(&admin, "/api/docs"));
}
