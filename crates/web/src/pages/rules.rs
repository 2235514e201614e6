//! What every page and form needs: the rule of each route. A route without a rule fails a test here, and another one
//! visits every route with every role and compares (`tests/api/matrix.rs`). The rule of an API operation is the scope
//! of its token in the OpenAPI document.

use rapport_domain::right::Right;

/// What a route needs of its visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nothing: pages for people who are not logged in, and addresses that lead to another page.
    Open,
    /// A session, also one whose person still has to show or set up a second factor.
    Login,
    /// A session whose role has this right.
    Right(Right),
}

const OPEN: Rule = Rule::Open;
const LOGIN: Rule = Rule::Login;
const READ: Rule = Rule::Right(Right::Read);
const OWN: Rule = Rule::Right(Right::Own);
const WORK: Rule = Rule::Right(Right::Work);
const EXPORT: Rule = Rule::Right(Right::Export);
const DELETE: Rule = Rule::Right(Right::Delete);
const IMPORT: Rule = Rule::Right(Right::Import);
const CHANNELS: Rule = Rule::Right(Right::Channels);
const WEBHOOKS: Rule = Rule::Right(Right::Webhooks);
const KEYS: Rule = Rule::Right(Right::Keys);
const MEMBERS: Rule = Rule::Right(Right::Members);
const SETTINGS: Rule = Rule::Right(Right::Settings);
const AUDIT: Rule = Rule::Right(Right::Audit);
const FACTORS: Rule = Rule::Right(Right::Factors);
const SSO: Rule = Rule::Right(Right::Sso);
const ACCOUNT_DATA: Rule = Rule::Right(Right::AccountData);
const COMPANY: Rule = Rule::Right(Right::Company);

/// The methods and the path of every route, with its rule.
pub const RULES: &[(&str, &str, Rule)] = &[
    ("GET", "/", READ),
    ("POST", "/sample-data", IMPORT),
    ("POST", "/sample-data/remove", IMPORT),
    ("GET", "/pipeline", READ),
    ("GET", "/pipeline/moves", READ),
    ("POST", "/pipeline/{id}/move", WORK),
    ("GET", "/accounts", READ),
    ("GET", "/accounts/export", EXPORT),
    ("POST", "/accounts/bulk", WORK),
    ("POST", "/accounts/bulk/apply", WORK),
    ("POST", "/accounts/bulk/delete", DELETE),
    ("POST", "/accounts/bulk/undo", WORK),
    ("POST", "/accounts/views", OWN),
    ("POST", "/accounts/views/rename", OWN),
    ("POST", "/accounts/views/delete", OWN),
    ("GET POST", "/accounts/new", WORK),
    ("GET POST", "/accounts/lookup", WORK),
    ("POST", "/accounts/lookup/create", WORK),
    ("GET", "/accounts/{id}", READ),
    ("POST", "/accounts/{id}/details", WORK),
    ("POST", "/accounts/{id}/fields", WORK),
    ("POST", "/accounts/{id}/fields/remove", WORK),
    ("POST", "/accounts/{id}/addresses", WORK),
    ("POST", "/accounts/{id}/addresses/remove", WORK),
    ("POST", "/accounts/{id}/contacts", WORK),
    ("POST", "/accounts/{id}/snooze", WORK),
    ("POST", "/accounts/{id}/cadence", WORK),
    ("POST", "/accounts/{id}/move", WORK),
    ("POST", "/accounts/{id}/messages", WORK),
    ("GET", "/accounts/{id}/conversations/{conversation}", READ),
    ("POST", "/accounts/{id}/conversations/{conversation}", WORK),
    ("POST", "/accounts/{id}/notes", WORK),
    ("POST", "/accounts/{id}/entries/{entry}", WORK),
    ("POST", "/accounts/{id}/entries/{entry}/delete", WORK),
    ("POST", "/accounts/{id}/entries/{entry}/pin", WORK),
    ("POST", "/accounts/{id}/corrections/{correction}/undo", WORK),
    ("GET", "/accounts/{id}/export", ACCOUNT_DATA),
    ("POST", "/accounts/{id}/delete", DELETE),
    ("POST", "/accounts/{id}/erase-payloads", DELETE),
    ("GET", "/clients", READ),
    ("GET", "/campaigns", READ),
    ("GET POST", "/campaigns/new", WORK),
    ("GET", "/campaigns/{id}", READ),
    ("GET POST", "/campaigns/{id}/edit", WORK),
    ("GET", "/campaigns/{id}/export", EXPORT),
    ("POST", "/campaigns/{id}/delete", WORK),
    ("GET", "/channels", READ),
    ("POST", "/channels", CHANNELS),
    ("GET", "/channels/{id}", READ),
    ("POST", "/channels/{id}/rename", CHANNELS),
    ("POST", "/channels/{id}/delete", CHANNELS),
    ("POST", "/channels/{id}/codes", CHANNELS),
    ("POST", "/channels/{id}/codes/archive", CHANNELS),
    ("POST", "/channels/{id}/codes/delete", CHANNELS),
    ("GET POST", "/imports", IMPORT),
    ("GET", "/imports/{id}", IMPORT),
    ("GET POST", "/imports/{id}/columns", IMPORT),
    ("POST", "/imports/{id}/layout", IMPORT),
    ("POST", "/imports/{id}/start", IMPORT),
    ("POST", "/imports/{id}/cancel", IMPORT),
    ("POST", "/imports/{id}/undo", IMPORT),
    ("POST", "/imports/{id}/remove", IMPORT),
    ("POST", "/imports/{id}/retry", IMPORT),
    ("GET", "/imports/{id}/errors", EXPORT),
    ("GET POST", "/webhooks", WEBHOOKS),
    ("GET", "/webhooks/new", WEBHOOKS),
    ("POST", "/webhooks/preview", WEBHOOKS),
    ("GET POST", "/webhooks/check", WEBHOOKS),
    ("GET", "/webhooks/receiving", WEBHOOKS),
    ("GET", "/webhooks/events", WEBHOOKS),
    ("GET", "/webhooks/{id}", WEBHOOKS),
    ("GET POST", "/webhooks/{id}/edit", WEBHOOKS),
    ("POST", "/webhooks/{id}/preview", WEBHOOKS),
    ("POST", "/webhooks/{id}/test", WEBHOOKS),
    ("POST", "/webhooks/{id}/rotate", WEBHOOKS),
    ("POST", "/webhooks/{id}/enable", WEBHOOKS),
    ("POST", "/webhooks/{id}/disable", WEBHOOKS),
    ("POST", "/webhooks/{id}/delete", WEBHOOKS),
    ("GET", "/deliveries", WEBHOOKS),
    ("GET", "/deliveries/{id}", WEBHOOKS),
    ("GET", "/deliveries/{id}/payload.json", WEBHOOKS),
    ("POST", "/deliveries/{id}/redeliver", WEBHOOKS),
    ("GET POST", "/redeliveries", WEBHOOKS),
    ("GET", "/redeliveries/new", WEBHOOKS),
    ("GET", "/redeliveries/{id}", WEBHOOKS),
    ("POST", "/redeliveries/{id}/cancel", WEBHOOKS),
    ("GET POST", "/settings", SETTINGS),
    ("GET", "/settings/webhooks", OPEN),
    ("GET POST", "/settings/currencies", SETTINGS),
    ("GET POST", "/settings/currencies/{id}", SETTINGS),
    ("GET", "/settings/currencies/{id}/delete", OPEN),
    ("POST", "/settings/currencies/{id}/delete", SETTINGS),
    ("GET POST", "/settings/cadence", SETTINGS),
    ("GET POST", "/settings/digest", SETTINGS),
    ("GET", "/settings/digest/send", OPEN),
    ("POST", "/settings/digest/send", SETTINGS),
    ("GET", "/settings/digest/preview", SETTINGS),
    ("GET", "/settings/digest/{week}", SETTINGS),
    ("GET", "/settings/digest/{week}/mail", SETTINGS),
    ("GET POST", "/settings/members", MEMBERS),
    ("GET", "/settings/members/{id}/role", OPEN),
    ("POST", "/settings/members/{id}/role", MEMBERS),
    ("GET", "/settings/members/{id}/deactivate", OPEN),
    ("POST", "/settings/members/{id}/deactivate", MEMBERS),
    ("GET", "/settings/members/{id}/reactivate", OPEN),
    ("POST", "/settings/members/{id}/reactivate", MEMBERS),
    ("GET", "/settings/members/{id}/password-reset", OPEN),
    ("POST", "/settings/members/{id}/password-reset", MEMBERS),
    ("GET", "/settings/members/{id}/factor-reset", OPEN),
    ("POST", "/settings/members/{id}/factor-reset", FACTORS),
    ("GET", "/settings/members/{id}/remove", OPEN),
    ("POST", "/settings/members/{id}/remove", MEMBERS),
    ("GET", "/settings/invitations/{id}/resend", OPEN),
    ("POST", "/settings/invitations/{id}/resend", MEMBERS),
    ("GET", "/settings/invitations/{id}/revoke", OPEN),
    ("POST", "/settings/invitations/{id}/revoke", MEMBERS),
    ("GET POST", "/settings/tokens", KEYS),
    ("GET", "/settings/tokens/{id}/revoke", OPEN),
    ("POST", "/settings/tokens/{id}/revoke", KEYS),
    ("GET", "/settings/ingest", KEYS),
    ("POST", "/settings/ingest", SETTINGS),
    ("GET", "/settings/ingest/key", OPEN),
    ("POST", "/settings/ingest/key", KEYS),
    ("GET", "/settings/ingest/inbound-key", OPEN),
    ("POST", "/settings/ingest/inbound-key", KEYS),
    ("GET", "/settings/mail", SETTINGS),
    ("GET", "/settings/mail/test", OPEN),
    ("POST", "/settings/mail/test", SETTINGS),
    ("GET", "/settings/audit", AUDIT),
    ("GET", "/settings/audit/export", AUDIT),
    ("GET", "/settings/system", SETTINGS),
    ("GET POST", "/settings/security", SETTINGS),
    ("GET POST", "/settings/sso", SSO),
    ("GET", "/settings/sso/test", OPEN),
    ("POST", "/settings/sso/test", SSO),
    ("GET", "/settings/sso/remove", OPEN),
    ("POST", "/settings/sso/remove", SSO),
    ("GET POST", "/settings/deletion", COMPANY),
    ("GET", "/settings/deletion/cancel", OPEN),
    ("POST", "/settings/deletion/cancel", COMPANY),
    ("GET", "/settings/export", COMPANY),
    ("GET", "/profile", READ),
    ("POST", "/profile/name", OWN),
    ("POST", "/profile/password", OWN),
    ("POST", "/profile/address", OWN),
    ("POST", "/profile/sessions/end", OWN),
    ("POST", "/profile/sessions/{id}/end", OWN),
    ("GET", "/profile/data", READ),
    ("GET", "/profile/confirm", OWN),
    ("POST", "/profile/email", OWN),
    ("POST", "/profile/leave", OWN),
    ("GET POST", "/profile/app", LOGIN),
    ("GET", "/profile/app/confirm", OPEN),
    ("POST", "/profile/app/confirm", LOGIN),
    ("POST", "/profile/app/remove", OWN),
    ("GET POST", "/profile/passkeys", LOGIN),
    ("POST", "/profile/passkeys/challenge", LOGIN),
    ("POST", "/profile/passkeys/proof", LOGIN),
    ("POST", "/profile/passkeys/{id}/name", OWN),
    ("POST", "/profile/passkeys/{id}/remove", OWN),
    ("GET", "/profile/recovery-codes", LOGIN),
    ("POST", "/profile/recovery-codes", OWN),
    ("GET", "/email-change/{token}", READ),
    ("POST", "/email-change/{token}", OWN),
    ("GET", "/companies", READ),
    ("POST", "/companies", LOGIN),
    ("GET", "/live", READ),
    ("GET", "/palette", READ),
    ("POST", "/theme", OPEN),
    ("POST", "/guide", OPEN),
    ("GET POST", "/login", OPEN),
    ("POST", "/login/passkey", OPEN),
    ("POST", "/login/passkey/challenge", OPEN),
    ("GET POST", "/login/second", OPEN),
    ("POST", "/login/second/challenge", OPEN),
    ("POST", "/login/second/passkey", OPEN),
    ("GET", "/login/set-up", LOGIN),
    ("POST", "/logout", OPEN),
    ("GET", "/sso", OPEN),
    ("GET", "/sso/{project}", OPEN),
    ("GET", "/sso/{project}/callback", OPEN),
    ("GET", "/setup", OPEN),
    ("GET POST", "/setup/{secret}", OPEN),
    ("GET POST", "/forgotten", OPEN),
    ("GET POST", "/password-reset/{token}", OPEN),
    ("GET POST", "/invitation/{token}", OPEN),
];

/// The rule of a page, by its address.
pub fn rule_of_page(path: &str) -> Option<Rule> {
    let found = RULES.iter().find(|(methods, route, _)| *route == path && methods.starts_with("GET"));
    found.map(|(.., rule)| *rule)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::{get, post};

    use super::*;
    use crate::pages::{Pages, areas};

    /// The routes of a router, each as method and path, from its debug form.
    fn routes_of(router: &Router<Pages>) -> Vec<String> {
        let shown = format!("{router:?}");
        let (shown, _) = shown.split_once("fallback_router").expect("the routes come first");
        let (endpoints, paths) = shown.split_once("node: Node").expect("the paths come after the endpoints");
        let by_id = |text: &str, mark: &str| -> BTreeMap<u32, String> {
            let parts = text.split("RouteId(").skip(1).map(|part| part.split_once(')').expect("an id"));
            let value = |rest: &str| {
                let begun = rest.split_once(mark).expect("a value").1;
                begun.split('"').next().unwrap_or_default().to_owned()
            };
            parts.map(|(id, rest)| (id.parse().expect("a number"), value(rest))).collect()
        };
        let (methods, paths) = (by_id(endpoints, "allow_header: Bytes(b\""), by_id(paths, ": \""));
        assert!(methods.keys().eq(paths.keys()), "{methods:?} {paths:?}");
        let mut routes: Vec<String> = methods
            .values()
            .zip(paths.values())
            .flat_map(|(methods, path)| methods.split(',').map(move |method| format!("{method} {path}")))
            .filter(|route| !route.starts_with("HEAD "))
            .collect();
        routes.sort_unstable();
        routes
    }

    #[test]
    fn every_route_has_one_rule() {
        let mut declared: Vec<String> = RULES
            .iter()
            .flat_map(|(methods, path, _)| methods.split(' ').map(move |method| format!("{method} {path}")))
            .collect();
        declared.sort_unstable();
        let routed = routes_of(&areas());
        for route in &routed {
            assert!(declared.contains(route), "{route} needs a rule in RULES");
        }
        assert_eq!(declared, routed, "RULES lists routes twice, or routes that don't exist");
    }

    #[test]
    fn a_router_names_its_routes_in_its_debug_form() {
        // The first test relies on this.
        let served = async || StatusCode::OK;
        let list = get(served).post(served).layer(axum::extract::DefaultBodyLimit::disable());
        let router: Router<Pages> = Router::new().route("/a/{id}", list).route("/b", post(served));
        assert_eq!(routes_of(&router), ["GET /a/{id}", "POST /a/{id}", "POST /b"]);
    }
}
