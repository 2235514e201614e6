//! Deletes an account or erases its payloads. Neither can be undone, so the page asks first, and says afterwards what was
//! removed and what was kept.

use axum::response::Response;
use rapport_app::Error;
use rapport_app::account::DeleteAccount;
use rapport_app::erasure::ErasePayloads;
use rapport_domain::erasure::Erased;
use rapport_domain::id::AccountId;

use super::page::AccountPage;
use super::words::short;
use super::{before, path_of};
use crate::pages::DELETE;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::refusal::Refusal;
use crate::pages::words::number::counted;

/// What the rows of a table are called, one and many, in the order in which they are listed.
const ROWS: [(&str, &str, &str); 13] = [
    ("message", "message", "messages"),
    ("conversation", "conversation", "conversations"),
    ("contact", "contact", "contacts"),
    ("note", "note", "notes"),
    ("correction", "correction", "corrections"),
    ("status_history", "history entry", "history entries"),
    ("activity", "activity event", "activity events"),
    ("account_address", "email address", "email addresses"),
    ("attempt", "attempt", "attempts"),
    ("delivery", "delivery", "deliveries"),
    ("audit", "audit entry", "audit entries"),
    ("account", "account", "accounts"),
    ("account_tombstone", "record of the deletion", "records of the deletion"),
];

pub async fn delete(action: Action<AccountId>) -> Result<Response, Refusal> {
    let name = short(&before(&action, DELETE).await?.reply.name);
    let deleted = action.act::<AccountPage, _>(DeleteAccount(action.id)).await?;
    action.done("/accounts", deletion(&name, &deleted))
}

/// What was deleted with an account, and what was kept.
fn deletion(name: &str, deleted: &[(&'static str, u64)]) -> String {
    let others = deleted.iter().copied().filter(|(table, _)| *table != "account");
    let removed = match listed(others).as_str() {
        "" => String::new(),
        list => format!(" Also deleted: {list}."),
    };
    format!(
        "{name} deleted.{removed} Its deliveries and audit entries are kept until they are too old or erased."
    )
}

pub async fn erase_payloads(action: Action<AccountId>) -> Result<Response, Refusal> {
    let erased = action.settle(erase(&action).await, banner::<AccountPage>).await?;
    action.done(&path_of(action.id), erasure(erased))
}

/// What was erased, and what was kept.
fn erasure(erased: Erased) -> String {
    let Erased { payloads, responses, values, .. } = erased;
    let payloads = counted(number(payloads), "payload", "payloads");
    let responses = counted(number(responses), "response", "responses");
    let entries = counted(number(values), "audit entry", "audit entries");
    let kept = erased.kept().map(|part| (part.table, part.rows));
    let kept = match listed(kept.into_iter().filter(|(table, _)| *table != "event")).as_str() {
        "" => String::new(),
        list => format!(" Kept without them, as a record of what happened: {list}."),
    };
    format!(
        "{payloads} erased from the delivery history, with {responses} of receivers, and the values in {entries}.{kept}"
    )
}

/// The rows of tables in words, as far as there are some.
fn listed(rows: impl Iterator<Item = (&'static str, u64)>) -> String {
    let rows: Vec<(&str, u64)> = rows.filter(|(_, rows)| *rows > 0).collect();
    let words = ROWS.iter().filter_map(|(table, one, many)| {
        let (_, found) = rows.iter().find(|(name, _)| name == table)?;
        Some(counted(number(*found), one, many))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn number(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Erases in as many steps as it takes. Only the first carries the form id.
async fn erase(action: &Action<AccountId>) -> Result<Erased, Error> {
    let (account, visitor) = (action.id, &action.visitor);
    let mut step = action.submit(ErasePayloads { account, after: None }).await?;
    while step.next.is_some() {
        let next = ErasePayloads { account, after: step.next };
        step = action.pages.write_as(&visitor.access(), visitor.origin, next).await?;
    }
    Ok(step.erased)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_lists_what_was_deleted() {
        let deleted =
            [("activity", 3), ("activity_count", 9), ("message", 1), ("contact", 0), ("account", 1)];
        let kept = "Its deliveries and audit entries are kept until they are too old or erased.";
        let expected = format!("Nordlys deleted. Also deleted: 1 message, 3 activity events. {kept}");
        assert_eq!(deletion("Nordlys", &deleted), expected);
        assert_eq!(deletion("Nordlys", &[("account", 1)]), format!("Nordlys deleted. {kept}"));
    }

    #[test]
    fn the_message_lists_what_was_erased_and_kept() {
        let erased =
            Erased { payloads: 2, responses: 1, values: 3, deliveries: 2, attempts: 4, ..Erased::default() };
        assert_eq!(
            erasure(erased),
            "2 payloads erased from the delivery history, with 1 response of receivers, and the values in 3 audit \
             entries. Kept without them, as a record of what happened: 4 attempts, 2 deliveries, 3 audit entries."
        );
        assert_eq!(
            erasure(Erased::default()),
            "0 payloads erased from the delivery history, with 0 responses of receivers, and the values in 0 audit \
             entries."
        );
    }
}
