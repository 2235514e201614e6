//! Schemas for the OpenAPI document only. The domain parses the actual requests and renders the responses. Tests
//! compare the schemas with what is actually sent.

#![expect(dead_code, reason = "these types only describe the API and are never constructed")]

use utoipa::{IntoParams, ToSchema};

/// The pipeline stage of an account.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Status {
    Prospect,
    Contacted,
    InNegotiation,
    InTrial,
    Customer,
    Lost,
    DoNotContact,
}

/// The source of a change.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Source {
    Operator,
    Upsert,
    Import,
    Lookup,
    Inbound,
    Automation,
}

/// What a member or a token may do. `member` works with accounts; `admin` and `owner` also manage settings, keys,
/// members and webhooks.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Role {
    Member,
    Admin,
    Owner,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// A lead or customer of the company.
#[derive(ToSchema)]
pub struct Account {
    #[schema(example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: String,
    /// The record id in your own system.
    #[schema(required = true, example = "CRM-00418")]
    imported_id: Option<String>,
    #[schema(example = "Nordlys AS")]
    name: String,
    status: Status,
    /// JSON values by key.
    #[schema(value_type = Object, example = json!({"plan": "pro", "seats": 12}))]
    custom_fields: String,
    /// A decimal amount.
    #[schema(required = true, example = "1200.50")]
    captured_value: Option<String>,
    /// An ISO 4217 code.
    #[schema(required = true, example = "EUR")]
    captured_value_currency: Option<String>,
    /// The code that attributed the account, as the company spells it.
    #[schema(required = true, example = "SPRING_26")]
    promo_code: Option<String>,
    #[schema(required = true)]
    channel: Option<ChannelRef>,
    /// When the account was attributed to its channel.
    #[schema(required = true, format = DateTime)]
    acquired_at: Option<String>,
    #[schema(required = true, format = DateTime)]
    last_contact_at: Option<String>,
    #[schema(required = true, format = DateTime)]
    first_seen_at: Option<String>,
    #[schema(required = true, format = DateTime)]
    last_seen_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    /// The account's own cadence. Null if the company's cadence applies.
    #[schema(required = true, minimum = 1, maximum = 3650)]
    cadence_days: Option<i64>,
    /// No reminders until the start of this day in the company's time zone.
    #[schema(required = true, format = Date)]
    snoozed_until: Option<String>,
    /// Whether the status is one of the company's tracked stages.
    tracked: bool,
    overdue: bool,
    /// When contact is due. Null if the account is not tracked.
    #[schema(required = true, format = DateTime)]
    due_at: Option<String>,
    days_overdue: i64,
}

/// The channel an account is attributed to.
#[derive(ToSchema)]
pub struct ChannelRef {
    #[schema(example = "chn_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: String,
    #[schema(example = "Spring fair")]
    name: String,
}

/// An account after a change of status.
#[derive(ToSchema)]
pub struct MovedAccount {
    #[schema(inline)]
    #[serde(flatten)]
    account: Account,
    /// False if the account already had this status.
    moved: bool,
}

#[derive(ToSchema)]
pub struct UpsertRequest {
    /// The slug of the token's company.
    #[schema(example = "acme")]
    project: String,
    /// 1 to 255 characters, compared exactly and case-sensitively.
    #[schema(min_length = 1, max_length = 255, example = "CRM-00418")]
    imported_id: String,
    status: Option<Status>,
    /// Merged per key: null deletes a key, and keys you don't send are kept. At most 200 keys and 64 KiB after the
    /// merge.
    #[schema(value_type = Option<Object>, example = json!({"plan": "pro", "old_key": null}))]
    custom_fields: Option<String>,
    /// Used when the account is created.
    #[schema(min_length = 1, max_length = 255, example = "Nordlys AS")]
    name: Option<String>,
    /// Matched case-insensitively.
    #[schema(max_length = 64, example = "SPRING_26")]
    promo_code: Option<String>,
    /// A decimal amount. Null clears the value and the currency.
    #[schema(example = "1200.50")]
    captured_value: Option<String>,
    /// An ISO 4217 code, in upper or lower case.
    #[schema(example = "EUR")]
    captured_value_currency: Option<String>,
}

#[derive(ToSchema)]
pub struct UpsertReply {
    account: Account,
    created: bool,
    /// The fields of the account that changed.
    #[schema(example = json!(["status", "custom_fields"]))]
    changed: Vec<String>,
    /// Fields that were sent but not used.
    #[schema(example = json!(["name"]))]
    ignored: Vec<String>,
    /// Whether `promo_code` matched an active code of the company.
    promo_code_matched: bool,
}

#[derive(ToSchema)]
pub struct IngestRequest {
    #[schema(min_items = 1, max_items = 100)]
    events: Vec<ActivityEvent>,
}

/// The kind of an event. `feature_used` and `custom` are counted per feature. `trial_started`, `became_customer` and
/// `churned` can move the account.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ActivityKind {
    AppOpened,
    FeatureUsed,
    TrialStarted,
    BecameCustomer,
    Churned,
    Custom,
}

/// A usage signal. `imported_id` or `account_id` identifies the account.
#[derive(ToSchema)]
pub struct ActivityEvent {
    #[schema(example = "CRM-00418")]
    imported_id: Option<String>,
    /// The service's own account id, instead of `imported_id`.
    account_id: Option<String>,
    kind: ActivityKind,
    /// Required for `feature_used`.
    #[schema(max_length = 128, example = "reports.export")]
    feature: Option<String>,
    /// ISO 8601. Defaults to the arrival time. At most 5 minutes ahead.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
    /// Up to 8 KiB. For `became_customer`, `captured_value` and `captured_value_currency` are read from it.
    #[schema(value_type = Option<Object>)]
    metadata: Option<String>,
    /// Makes the event safe to send again: an id is accepted only once within 90 days.
    #[schema(max_length = 100)]
    event_id: Option<String>,
}

#[derive(ToSchema)]
pub struct IngestReply {
    received: i64,
    accepted: i64,
    /// Events whose `event_id` was already accepted. They have no effect.
    duplicates: i64,
    /// Events that match no account, as sent, plus `index`.
    #[schema(value_type = Vec<Object>)]
    unmatched: Vec<String>,
    rejected: Vec<RejectedEvent>,
}

/// An invalid event.
#[derive(ToSchema)]
pub struct RejectedEvent {
    /// Its index in the request.
    index: i64,
    #[schema(example = "unknown_kind")]
    code: String,
    #[schema(example = "kind")]
    field: String,
    detail: String,
}

#[derive(ToSchema)]
pub struct AccountCreate {
    #[schema(min_length = 1, max_length = 255, example = "Nordlys AS")]
    name: String,
    /// Defaults to `prospect`.
    status: Option<Status>,
    #[schema(min_length = 1, max_length = 255)]
    imported_id: Option<String>,
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<String>,
    #[schema(example = "1200.50")]
    captured_value: Option<String>,
    #[schema(example = "EUR")]
    captured_value_currency: Option<String>,
    /// An active code of the company.
    #[schema(max_length = 64)]
    promo_code: Option<String>,
    #[schema(minimum = 1, maximum = 3650)]
    cadence_days: Option<i64>,
    #[schema(format = Date)]
    snoozed_until: Option<String>,
}

#[derive(ToSchema)]
pub struct AccountPatch {
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    status: Option<Status>,
    #[schema(min_length = 1, max_length = 255)]
    imported_id: Option<String>,
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<String>,
    captured_value: Option<String>,
    captured_value_currency: Option<String>,
    /// An active code of the company. Null removes the account from its channel.
    #[schema(max_length = 64)]
    promo_code: Option<String>,
    #[schema(minimum = 1, maximum = 3650)]
    cadence_days: Option<i64>,
    #[schema(format = Date)]
    snoozed_until: Option<String>,
}

#[derive(ToSchema)]
pub struct StatusChange {
    status: Status,
    #[schema(max_length = 4000)]
    note: Option<String>,
}

/// One move of an account.
#[derive(ToSchema)]
pub struct HistoryEntry {
    #[schema(example = "his_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: String,
    #[schema(required = true)]
    from: Option<Status>,
    to: Status,
    source: Source,
    actor: Actor,
    #[schema(required = true)]
    note: Option<String>,
    #[schema(format = DateTime)]
    at: String,
}

/// Who did something, with their name at that time.
#[derive(ToSchema)]
pub struct Actor {
    #[schema(rename = "type", example = "token")]
    kind: String,
    #[schema(required = true)]
    id: Option<String>,
    #[schema(required = true)]
    name: Option<String>,
}

#[derive(ToSchema)]
pub struct ChannelName {
    #[schema(min_length = 1, max_length = 120, example = "Spring fair")]
    name: String,
}

#[derive(ToSchema)]
pub struct CodeCreate {
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$", example = "SPRING_26")]
    code: String,
}

#[derive(ToSchema)]
pub struct CodePatch {
    archived: bool,
}

#[derive(ToSchema)]
pub struct SettingsPatch {
    #[schema(minimum = 1, maximum = 3650)]
    cadence_days: Option<i64>,
    /// One or more of `customer`, `in_trial`, `in_negotiation`.
    #[schema(min_items = 1)]
    tracked_stages: Option<Vec<Status>>,
    digest_enabled: Option<bool>,
    digest_weekday: Option<Weekday>,
    #[schema(example = "Europe/Berlin")]
    time_zone: Option<String>,
    #[schema(example = "EUR")]
    default_currency: Option<String>,
}

/// A new ingest key, shown only once.
#[derive(ToSchema)]
pub struct NewIngestKey {
    ingest_key: String,
    /// The same key.
    key: String,
    prefix: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A new inbound key, shown only once.
#[derive(ToSchema)]
pub struct NewInboundKey {
    inbound_key: String,
    /// The same key.
    key: String,
    prefix: String,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(ToSchema)]
pub struct TokenCreate {
    #[schema(min_length = 1, max_length = 120, example = "CRM sync")]
    name: String,
    /// Defaults to `admin`.
    role: Option<Role>,
}

#[derive(ToSchema)]
pub struct MemberCreate {
    #[schema(max_length = 254, example = "ana@acme.example")]
    email: String,
    #[schema(min_length = 1, max_length = 120)]
    name: Option<String>,
    role: Role,
}

#[derive(ToSchema)]
pub struct MemberPatch {
    role: Option<Role>,
    active: Option<bool>,
}

/// An error (RFC 9457), sent as `application/problem+json`.
#[derive(ToSchema)]
pub struct Problem {
    #[schema(rename = "type", example = "urn:rapport:problem:invalid")]
    kind: String,
    title: String,
    #[schema(example = 422)]
    status: i32,
    detail: String,
    /// A stable identifier for programs.
    #[schema(example = "invalid")]
    code: String,
    /// All invalid fields or parameters, if there are any.
    errors: Option<Vec<FieldError>>,
}

/// An invalid field or parameter.
#[derive(ToSchema)]
pub struct FieldError {
    /// A JSON pointer into the body, or the name of a query parameter.
    #[schema(example = "/captured_value")]
    pointer: String,
    #[schema(example = "malformed")]
    code: String,
    detail: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageParameters {
    /// The maximum number of items per page. More than 200 counts as 200.
    #[param(minimum = 1, default = 50)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AccountFilterParameters {
    /// Beginnings of words in the name, or the imported_id.
    q: Option<String>,
    status: Option<Vec<Status>>,
    /// Channel ids.
    channel: Option<Vec<String>>,
    imported_id: Option<String>,
    tracked: Option<bool>,
    overdue: Option<bool>,
    /// False for accounts never seen.
    seen: Option<bool>,
    #[param(format = DateTime)]
    seen_before: Option<String>,
    #[param(format = DateTime)]
    seen_after: Option<String>,
    /// False for accounts never contacted.
    contacted: Option<bool>,
    #[param(format = DateTime)]
    contacted_before: Option<String>,
    #[param(format = DateTime)]
    contacted_after: Option<String>,
    /// True for accounts reactivated from Do not contact that no operator has moved since.
    campaign_hold: Option<bool>,
    /// Accounts whose custom field KEY has this value, ignoring case. If the field is an array, one of its elements
    /// must match. Repeat the parameter to match any of several values.
    #[param(rename = "field.KEY", example = "pro")]
    field: Option<String>,
    /// Accounts whose custom field KEY is a text that begins with this, ignoring case.
    #[param(rename = "field_prefix.KEY")]
    field_prefix: Option<String>,
    /// Accounts that have a custom field with this name. Repeat the parameter to require several fields.
    has_field: Option<Vec<String>>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AccountListParameters {
    /// Defaults to `-created_at` (newest first).
    #[param(inline)]
    sort: Option<AccountSort>,
}

#[derive(ToSchema)]
pub enum AccountSort {
    #[schema(rename = "-created_at")]
    Newest,
    #[schema(rename = "created_at")]
    Oldest,
    #[schema(rename = "name")]
    Name,
    #[schema(rename = "-name")]
    NameDescending,
    #[schema(rename = "-last_seen_at")]
    LastSeen,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rapport_app::read::accounts::Sort;
    use rapport_domain::account::Account as DomainAccount;
    use rapport_domain::activity::Kind;
    use rapport_domain::company::Settings;
    use rapport_domain::id::AccountId;
    use rapport_domain::member::Role as DomainRole;
    use rapport_domain::pipeline::{Source as DomainSource, Status as DomainStatus};
    use rapport_domain::time::Time;
    use serde_json::{Value, json};

    fn schemas() -> Value {
        let document = serde_json::to_value(crate::api::openapi::document()).unwrap();
        document["components"]["schemas"].clone()
    }

    fn words(schema: &Value) -> Vec<&str> {
        schema["enum"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
    }

    #[test]
    fn the_account_object_is_the_one_described() {
        let now = Time::from_micros(0);
        let settings = Settings::default();
        let id = AccountId::from_bytes([1; 16]);
        let account = DomainAccount::new(id, "A".to_owned(), DomainStatus::Prospect, now);
        let sent = serde_json::to_value(account.view(&settings, now)).unwrap();
        let sent: BTreeSet<&String> = sent.as_object().unwrap().keys().collect();
        let schemas = schemas();
        let described: BTreeSet<&String> =
            schemas["Account"]["properties"].as_object().unwrap().keys().collect();
        assert_eq!(sent, described);
        let required: BTreeSet<String> =
            serde_json::from_value(schemas["Account"]["required"].clone()).unwrap();
        assert_eq!(required.iter().collect::<BTreeSet<_>>(), described, "every member is always present");
    }

    #[test]
    fn enum_values_match_the_domain() {
        let schemas = schemas();
        assert_eq!(words(&schemas["Status"]), DomainStatus::ALL.map(DomainStatus::as_str));
        assert_eq!(words(&schemas["ActivityKind"]), Kind::ALL.map(Kind::as_str));
        assert_eq!(words(&schemas["Role"]), DomainRole::ALL.map(DomainRole::as_str));
        assert_eq!(words(&schemas["Source"]), DomainSource::ALL.map(DomainSource::as_str));
    }

    #[test]
    fn sort_values_match_the_list() {
        let document = serde_json::to_value(crate::api::openapi::document()).unwrap();
        let parameters = document["paths"]["/api/accounts/"]["get"]["parameters"].as_array().unwrap().clone();
        let sort = parameters.iter().find(|parameter| parameter["name"] == json!("sort")).unwrap();
        let text = sort["schema"].to_string();
        for sort in Sort::ALL {
            assert!(text.contains(&format!("\"{}\"", sort.as_str())), "{text}");
        }
    }
}
