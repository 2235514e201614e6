//! What may read more than its keys lead to, and why.

/// Tables that stay short, so that any way through them is short.
pub(super) const SHORT: &[(&str, &str)] = &[
    ("company", "one row a company"),
    ("person", "found by address or id; a few per company"),
    ("member", "the people of a company"),
    ("node", "one row a process"),
    ("schema_version", "one row a migration"),
    ("channel", "as many as people name"),
    ("promo_code", "as many as people name"),
    ("campaign", "as many as people name"),
    ("saved_view", "as many as people name"),
    ("credential", "as many as people make"),
    ("invitation", "those open"),
    ("import", "one row a file"),
    ("import_mapping", "one row a kind of file"),
    ("redelivery", "one row a bulk redelivery"),
    ("digest", "one row a week"),
    ("digest_schedule", "one row a company"),
    ("field_fill", "one row a company, while its accounts are walked"),
    ("channel_count", "one row a company"),
    ("channel_total", "one row a code and currency"),
    ("stage_total", "one row a stage and currency"),
    ("activity_day", "a few rows a day"),
    ("ingest_reject", "a bounded few per company"),
    ("reset_request", "those of a moment"),
    ("password_reset", "those of an hour"),
    ("fan_out", "those of a moment"),
    ("manual_attempt", "those asked for and not made yet"),
];

/// Statement, table, and why it may read all of a company or all there is.
const READS_MORE: &[(&str, &str, &str)] = &[
    ("delivery::OWNERS", "delivery", "the index holds only what nodes own"),
    ("delivery_list::OWNERS", "delivery", "the index holds only what nodes own"),
    ("delivery_list::STANDINGS", "webhook", "a page about all webhooks of the company"),
    ("webhook::LIST", "webhook", "a page about all webhooks of the company"),
    ("webhook::SUBSCRIBERS", "webhook", "an event goes to every webhook that selected it"),
    ("webhook::STANDINGS", "webhook", "read once, when a sender starts"),
    ("webhook::WITH_WORK", "webhook", "a sweep over all webhooks"),
    ("webhook::ENDING", "webhook", "a sweep over all webhooks"),
    ("retention::DELETE_WEBHOOKS", "webhook", "a daily sweep over all webhooks of the company"),
    ("session::PRUNE", "session", "a daily sweep over the sessions of the company"),
    ("session::TOUCH", "session", "in the background, over the sessions of the company"),
    ("stage_totals::ALL", "account", "counts all accounts of the company, in the background"),
    ("import_data::DELETE_CHANGES", "import_change", "by account, and an account is in few imports"),
    ("mail::WITHDRAW", "mail", "the index holds only mails that wait"),
];

/// The exception for a statement that reads a table, by its name.
pub(super) fn of(statement: &str, table: &str) -> Option<&'static str> {
    let found = READS_MORE.iter().find(|(name, of, _)| *name == statement && *of == table);
    found.map(|(name, _, _)| *name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    READS_MORE.iter().map(|(name, _, _)| *name)
}
