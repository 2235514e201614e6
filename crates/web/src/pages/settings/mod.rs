//! The settings area: the company, its cadence and digest, who works in it, its keys, its mail, what was changed by
//! whom, and how the service does. For admins only; a row of tabs leads from one page to the next.

mod audit;
mod audit_words;
mod cadence;
mod company;
mod digest;
mod ingest;
mod invitations;
mod mail;
mod members;
mod system;
mod tokens;

use axum::Router;
use axum::response::Redirect;
use axum::routing::{MethodRouter, get};
use rapport_domain::member::Role;
use serde_json::{Map, Value};

use crate::pages::Pages;
use crate::pages::form::Form;

/// Rows of a list on one page.
const ROWS: usize = 50;

pub fn routes() -> Router<Pages> {
    Router::new()
        .merge(company::routes())
        .merge(cadence::routes())
        .merge(digest::routes())
        .merge(members::routes())
        .merge(invitations::routes())
        .merge(tokens::routes())
        .merge(ingest::routes())
        .merge(mail::routes())
        .merge(audit::routes())
        .merge(system::routes())
}

/// Says which tab a page belongs to.
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

/// Where only forms are sent to: whoever loads the address again gets the page that the form is on.
fn back_to(path: &'static str) -> MethodRouter<Pages> {
    get(move || async move { Redirect::to(path) })
}

/// Fields as members, also those left empty: their parser says what is wrong with that.
fn typed(form: &Form, names: &[&'static str]) -> Map<String, Value> {
    names.iter().map(|name| ((*name).to_owned(), Value::from(form.text(name).trim()))).collect()
}

/// The roles that somebody of a role may give, as options.
fn roles_up_to(highest: Role) -> Vec<(&'static str, &'static str)> {
    let roles = Role::ALL.into_iter().filter(|role| *role <= highest);
    roles.map(|role| (role.as_str(), role_label(role))).collect()
}

const fn role_label(role: Role) -> &'static str {
    match role {
        Role::Member => "Member: works with accounts",
        Role::Admin => "Admin: also manages settings, keys, members and webhooks",
        Role::Owner => "Owner: an admin whom only an owner can remove",
    }
}

/// A stretch of a list that was read whole, and where the next one begins where there is more.
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
