//! Everything that is ever prepared: the statements, the bulk statements, and queries composed at run time.

use crate::clients::plans::planned;
use crate::{
    account, account_address, account_field, activity, activity_day, audit, bulk_change, cadence,
    channel_total, company_data, contact, correction, delivery, event, fan_out,
};
use crate::{
    all_statements, history, import, import_data, ingest_reject, mail, manual_attempt, message, note,
};
use crate::{stage_totals, tombstone, webhook};

/// A statement to plan.
pub(super) struct Planned {
    pub name: String,
    pub text: String,
    pub parameters: usize,
}

pub(super) fn everything() -> Vec<Planned> {
    let statements = all_statements().into_iter().map(|statement| {
        let name = statement.name.strip_prefix("rapport_store::").unwrap_or(statement.name);
        (name.to_owned(), statement.sql.to_owned())
    });
    let bulk = all_bulk().into_iter().map(|(name, sql)| (name.to_owned(), sql.to_owned()));
    let composed = planned().into_iter().map(|planned| (planned.what, planned.text));
    let all = statements.chain(bulk).chain(composed).chain(company_data::planned());
    all.map(|(name, text)| Planned { parameters: parameters(&text), name, text }).collect()
}

fn parameters(text: &str) -> usize {
    let numbers = text.split('$').skip(1).filter_map(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().ok()
    });
    numbers.max().unwrap_or(0)
}

macro_rules! bulk {
    ($($module:ident::$name:ident,)+) => {
        vec![$((concat!(stringify!($module), "::", stringify!($name)), $module::$name.postgres())),+]
    };
}

/// Every `InsertMany`, `UpdateMany` and `DeleteMany`.
pub(super) fn all_bulk() -> Vec<(&'static str, &'static str)> {
    bulk![
        account::INSERT,
        account::UPDATE,
        account::SET_IMPORTED_CONTACT,
        account::INSERT_WORDS,
        account_address::INSERT_MANY,
        account_field::INSERT,
        account_field::DELETE,
        activity::INSERT,
        activity::COUNT,
        activity::SEE,
        activity::SEE_LATER,
        activity::SEE_EARLIER,
        activity::TAKE_MARK,
        activity_day::ADD,
        audit::SET_DETAIL,
        bulk_change::INSERT,
        cadence::KEEP,
        cadence::OPEN_EPISODE,
        channel_total::INSERT,
        contact::INSERT,
        correction::INSERT,
        delivery::INSERT,
        delivery::SETTLE,
        delivery::DESCRIBE,
        delivery::INSERT_ATTEMPTS,
        event::INSERT,
        fan_out::INSERT,
        history::INSERT,
        import::INSERT,
        import::UPDATE,
        import::UPDATE_PROGRESS,
        import_data::INSERT_ERRORS,
        import_data::PUT_CHANGES,
        import_data::PUT_ACCOUNTS,
        import_data::PUT_WORDS,
        ingest_reject::INSERT,
        mail::INSERT,
        manual_attempt::INSERT,
        message::INSERT,
        note::INSERT,
        stage_totals::KEEP,
        tombstone::INSERT,
        webhook::UPDATE,
    ]
}
