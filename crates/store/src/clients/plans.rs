//! The queries of the Clients page, the sweep and the conversations with an account, for the tests that check
//! that their plans are index reads.

use rapport_domain::company::{Settings, TrackedStages};
use rapport_domain::pipeline::Status;

use super::*;
use crate::{cadence, cadence_preview, contact, conversation, message, recent, stage_totals, timeline};

const DAY: i64 = 86_400_000_000;

/// A query, and the index that its plan must use on either engine.
pub(crate) struct Planned {
    pub what: String,
    pub text: String,
    pub parameters: usize,
    pub index: &'static str,
}

/// The queries of a company that tracks customers.
pub(crate) fn planned() -> Vec<Planned> {
    let tracked_stages = TrackedStages::from_statuses(&[Status::Customer]).expect("a stage");
    let settings = Settings { tracked_stages, ..Settings::default() };
    let now = Time::from_micros(60 * DAY);
    let derived = Derived::of(&settings, now);
    let planned = |what: String, sql: &Sql, index: &'static str| Planned {
        what,
        text: sql.text().to_owned(),
        parameters: sql.values().len() + 1,
        index,
    };
    let mut all = Vec::new();
    for tab in Tab::ALL {
        let indexes: &[&'static str] = match tab {
            Tab::Overdue | Tab::DueSoon => &["cadence_by_time", "cadence_snoozed"],
            Tab::Snoozed => &["cadence_snoozed"],
            Tab::Tracked => &["cadence_by_time", "cadence_snoozed_by_time"],
        };
        let place = Place { key: 40, account: AccountId::from_bytes([7; 16]) };
        for after in [None, Some(place)] {
            let list = ListClients { tab, after, limit: 50, now };
            let sql = list.sql(&derived, after.map(|_| "1970-02-10"));
            all.extend(indexes.iter().map(|index| planned(format!("{tab:?} after {after:?}"), &sql, index)));
        }
        let sql = count_sql(&derived, tab, now, COUNT_CAP);
        all.extend(indexes.iter().map(|index| planned(format!("count of {tab:?}"), &sql, index)));
    }
    let shorter = Settings { cadence_days: 7, ..settings.clone() };
    let (derived_shorter, ranges) =
        (Derived::of(&shorter, now), cadence_preview::added(&settings, &shorter, now));
    let preview = cadence_preview::sql(&derived_shorter, &ranges);
    for index in ["cadence_by_time", "cadence_snoozed"] {
        all.push(planned("the preview of another cadence".to_owned(), &preview, index));
    }
    let sweep = derived.ordered(Which::UNANNOUNCED, Window::until(now), None, 100);
    for index in ["cadence_unannounced", "cadence_snoozed"] {
        all.push(planned("the sweep".to_owned(), &sweep, index));
    }
    for (what, statement, parameters, index) in [
        ("the outlook", &cadence::OUTLOOK, 0, "cadence_unannounced"),
        ("the outlook on snoozes", &cadence::OUTLOOK, 0, "cadence_snoozed"),
        ("snoozes that ended", &cadence::ENDED_SNOOZES, 4, "cadence_snoozed"),
        // Either index will do: both begin with the account.
        ("the last contacts", &LAST_CONTACTS, 2, "contact_"),
        ("the last messages", &LAST_MESSAGES, 2, "message_by_account"),
        ("an account's contacts", &contact::OF_ACCOUNT, 5, "contact_"),
        ("an account's conversations", &conversation::OF_ACCOUNT, 5, "conversation_by_account"),
        ("a conversation's messages", &message::OF_CONVERSATION, 5, "message_by_conversation"),
        ("the timeline's messages", &timeline::MESSAGES, 5, "message_by_account"),
        ("a stage's totals", &stage_totals::LIVE, 2, "account_by_status"),
        ("new accounts", &recent::NEW_ACCOUNTS, 2, "account_"),
        ("moves since a time", &recent::MOVE_COUNT, 2, "status_history_moves"),
        ("moves", &recent::MOVES, 3, "status_history_moves"),
    ] {
        all.push(Planned { what: what.to_owned(), text: statement.sql.to_owned(), parameters, index });
    }
    all
}
