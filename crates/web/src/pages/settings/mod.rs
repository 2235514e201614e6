//! The settings area: company, currencies, cadence, digest, members, security, single sign-on, tokens and keys, mail, audit log and
//! system. For admins only; single sign-on and the deletion of the company for owners only. Tabs link its pages.

mod audit;
mod audit_words;
mod cadence;
mod company;
mod currencies;
mod deletion;
mod digest;
mod ingest;
mod invitations;
mod mail;
mod members;
mod security;
mod sso;
mod system;
mod tokens;

use axum::Router;
use axum::response::Redirect;
use axum::routing::{MethodRouter, get};
use rapport_domain::member::Role;
use serde_json::{Map, Value};

use crate::pages::Pages;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;

/// Currencies to suggest. Every other ISO 4217 code is accepted too.
const CURRENCIES: [&str; 24] = [
    "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "ILS", "INR", "JPY", "KRW",
    "MXN", "NOK", "NZD", "PLN", "RON", "SEK", "SGD", "USD", "ZAR",
];
/// How many rows a page of a list shows.
const ROWS: usize = 50;

pub fn routes() -> Router<Pages> {
    Router::new()
        .merge(company::routes())
        .merge(currencies::routes())
        .merge(deletion::routes())
        .merge(cadence::routes())
        .merge(digest::routes())
        .merge(members::routes())
        .merge(invitations::routes())
        .merge(sso::routes())
        .merge(tokens::routes())
        .merge(security::routes())
        .merge(ingest::routes())
        .merge(mail::routes())
        .merge(audit::routes())
        .merge(system::routes())
}

/// Sets the tab of a page.
macro_rules! tabbed {
    ($tab:literal: $($page:ty),+ $(,)?) => {$(
        impl $page {
            const fn tab(&self) -> &'static str {
                $tab
            }
        }
    )+};
}
use tabbed;

/// For addresses that only forms are sent to: loading one again shows the page with the form.
fn back_to(path: &'static str) -> MethodRouter<Pages> {
    get(move || async move { Redirect::to(path) })
}

/// Fields as members, including empty ones, which their parser refuses.
fn typed(form: &Form, names: &[&'static str]) -> Map<String, Value> {
    names.iter().map(|name| ((*name).to_owned(), Value::from(form.text(name).trim()))).collect()
}

/// The roles that a person with this role may give, as options.
fn roles_up_to(highest: Role) -> Vec<(&'static str, &'static str)> {
    let roles = Role::ALL.into_iter().filter(|role| *role <= highest);
    roles.map(|role| (role.as_str(), role_label(role))).collect()
}

const fn role_label(role: Role) -> &'static str {
    match role {
        Role::Viewer => "Viewer: sees everything a member sees",
        Role::Member => "Member: works with accounts",
        Role::Admin => "Admin: also manages settings, keys, members and webhooks",
        Role::Owner => "Owner: an admin that only an owner can remove",
    }
}

/// A new form that asks for a role. Most people and programs work with accounts.
fn role_draft() -> Draft {
    Draft::new([("role", Role::Member.as_str().to_owned())])
}

/// A page of a list that was read completely, and the start of the next page if there is one.
fn stretch<T, K: PartialEq>(items: Vec<T>, key: impl Fn(&T) -> K, after: Option<&K>) -> (Vec<T>, Option<K>) {
    let begin = after.and_then(|after| items.iter().position(|item| key(item) == *after));
    let mut rest = items.into_iter().skip(begin.map_or(0, |place| place + 1));
    let shown: Vec<T> = rest.by_ref().take(ROWS).collect();
    let next = if rest.next().is_some() { shown.last().map(key) } else { None };
    (shown, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_into_stretches() {
        let all: Vec<usize> = (0..120).collect();
        let (first, next) = stretch(all.clone(), |item| *item, None);
        assert_eq!((first.len(), next), (50, Some(49)));
        let (last, next) = stretch(all.clone(), |item| *item, Some(&99));
        assert_eq!((last, next), ((100..120).collect(), None));
        assert_eq!(stretch(all, |item| *item, Some(&500)).0.len(), 50);
    }
}
