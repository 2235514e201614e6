//! Statements that may read more rows than their keys select, and why.

/// Tables that stay short, so that any way to read them is fast.
pub(super) const SHORT: &[(&str, &str)] = &[
    ("company", "one row per company"),
    ("company_deletion", "companies that wait to be deleted"),
    ("person", "found by address or id; a few per company"),
    ("member", "the people of a company"),
    ("node", "one row per process"),
    ("schema_version", "one row per migration"),
    ("encryption_key", "one row"),
    ("change_clock", "one row"),
    ("channel", "as many as people create"),
    ("promo_code", "as many as people create"),
    ("campaign", "as many as people create"),
    ("saved_view", "as many as people create"),
    ("credential", "as many as people create"),
    ("invitation", "pending ones only"),
    ("import", "one row per file"),
    ("import_mapping", "one row per kind of file"),
    ("import_word", "as many as people choose"),
    ("redelivery", "one row per bulk redelivery"),
    ("digest", "one row per week"),
    ("digest_schedule", "one row per company"),
    ("subscription", "one row per company"),
    ("field_fill", "one row per company, while its accounts are indexed"),
    ("channel_count", "one row per company"),
    ("channel_total", "one row per code and currency"),
    ("stage_total", "one row per stage and currency"),
    ("activity_day", "a few rows per day"),
    ("ingest_reject", "a small bounded number per company"),
    ("reset_request", "short-lived"),
    ("password_reset", "kept for an hour"),
    ("address_change", "kept for an hour"),
    ("mail_budget", "kept for a day"),
    ("passkey", "a few per person"),
    ("totp", "at most one per person"),
    ("recovery_code", "at most ten per person"),
    ("spent_challenge", "kept for minutes"),
    ("fan_out", "short-lived"),
    ("manual_attempt", "attempts that are still waiting"),
    ("sso", "one row per company"),
    ("sso_identity", "the people of a company"),
    ("claimed_domain", "a few per company"),
    ("removed_member", "the people of a company"),
];

/// Statement, table, and why it may read a whole company or the whole table.
const READS_MORE: &[(&str, &str, &str)] = &[
    ("backlog::HOLDING", "webhook", "monitoring looks at all webhooks"),
    ("backlog::DISABLED", "webhook", "monitoring looks at all webhooks"),
    ("company_data::import_change::delete", "import_change", "by account, and an account is in few imports"),
    ("company_deletion::END_SESSIONS", "session", "everyone's access ends at once"),
    ("company_deletion::END_WEBHOOKS", "webhook", "all webhooks of the company end at once"),
    ("delivery::OWNERS", "delivery", "the index contains only deliveries owned by nodes"),
    ("delivery_list::OWNERS", "delivery", "the index contains only deliveries owned by nodes"),
    ("delivery_list::STANDINGS", "webhook", "a page about all webhooks of the company"),
    ("webhook::LIST", "webhook", "a page about all webhooks of the company"),
    ("webhook::SELECTIONS", "webhook", "what all webhooks of the company select together"),
    ("subscription::SUBSCRIBERS", "webhook", "an event goes to every webhook that selected it"),
    ("webhook::STANDINGS", "webhook", "read once, when a sender starts"),
    ("webhook::WITH_WORK", "webhook", "a sweep over all webhooks"),
    ("webhook::ENDING", "webhook", "a sweep over all webhooks"),
    ("retention::DELETE_WEBHOOKS", "webhook", "a daily sweep over all webhooks of the company"),
    ("sample::ACCOUNTS", "account", "the index contains only sample accounts"),
    ("session::END_BY_PASSWORD", "session", "once, when single sign-on becomes required"),
    ("session::END_BY_SSO", "session", "once, when single sign-on is turned off"),
    ("session::PRUNE", "session", "a daily sweep over the sessions of the company"),
    ("session::TOUCH", "session", "in the background, over the sessions of the company"),
    ("import_data::DELETE_CHANGES", "import_change", "by account, and an account is in few imports"),
    ("mail::WITHDRAW", "mail", "the index contains only waiting mail"),
];

/// The exception for a statement that reads a table, by its name.
pub(super) fn of(statement: &str, table: &str) -> Option<&'static str> {
    let found = READS_MORE.iter().find(|(name, of, _)| *name == statement && *of == table);
    found.map(|(name, _, _)| *name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    READS_MORE.iter().map(|(name, _, _)| *name)
}
