//! What clients send, for the OpenAPI document only: the domain parses the actual members and parameters. Limits are
//! not repeated here; `bounds` adds those that are enforced.

#![expect(dead_code, reason = "these types only describe requests and are never constructed")]

use rapport_app::read::accounts::Sort;
use rapport_app::read::clients::Tab;
use rapport_domain::audience::ImportEffect;
use rapport_domain::campaign::Goal;
use rapport_domain::company::Weekday;
use rapport_domain::conversation::Direction;
use rapport_domain::custom_fields::FieldChange;
use rapport_domain::delivery_list::Shown;
use rapport_domain::file_format::Format;
use rapport_domain::import::Mode;
use rapport_domain::invitation::Way;
use rapport_domain::member::Role;
use rapport_domain::pipeline::Status;
use rapport_domain::policy::{NamePolicy, StatusPolicy};
use rapport_domain::right::Grant;
use rapport_domain::schema::one_of;
use rapport_domain::webhook::{Held, Selection};
use rapport_domain::{activity, contact, event, sso};
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{IntoParams, ToSchema};

/// Stands for `Sort`, which storage owns.
struct SortWord;

impl utoipa::PartialSchema for SortWord {
    fn schema() -> RefOr<Schema> {
        one_of(Sort::all().map(Sort::as_str)).into()
    }
}

impl ToSchema for SortWord {}

/// Stands for `Tab`, which storage owns.
struct TabWord;

impl utoipa::PartialSchema for TabWord {
    fn schema() -> RefOr<Schema> {
        one_of(Tab::ALL.map(Tab::as_str)).into()
    }
}

impl ToSchema for TabWord {}

/// A number keeps its digits, but some languages round them, so a text is better.
fn amount() -> ObjectBuilder {
    let types = SchemaType::Array(vec![Type::String, Type::Number, Type::Null]);
    let detail = "A decimal amount, as a text or a number.";
    ObjectBuilder::new().schema_type(types).description(Some(detail)).examples([json!("1200.50")])
}

fn clearing_amount() -> ObjectBuilder {
    let detail = "A decimal amount, as a text or a number. Null clears the value and the currency.";
    amount().description(Some(detail))
}

fn rate() -> ObjectBuilder {
    let types = SchemaType::Array(vec![Type::String, Type::Number]);
    let detail = "What one unit is worth in the default currency: a decimal number above zero, as a text or a number. \
                  At most 8 digits before the decimal point and 10 after it.";
    ObjectBuilder::new().schema_type(types).description(Some(detail)).examples([json!("1.05")])
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageParameters {
    /// The maximum number of items per page. More than 200 counts as 200.
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditFilterParameters {
    /// The id of the person who did it.
    person: Option<String>,
    /// An action, such as `webhook.created`, or a group of actions, such as `webhook`.
    #[param(example = "settings.changed")]
    action: Option<String>,
    /// `false` leaves out logins, failed logins and logouts. They are included by default.
    logins: Option<bool>,
    /// At this time or later.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Before this time.
    #[param(format = DateTime)]
    to: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditExportParameters {
    /// The file type: `csv` by default.
    #[param(inline)]
    format: Option<Format>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FullExportParameters {
    /// The file type: `jsonl` by default. `csv` is a ZIP archive with a CSV file for each table.
    #[param(inline)]
    format: Option<Format>,
}

/// Stands for a ZIP archive.
pub struct Archive;

impl utoipa::PartialSchema for Archive {
    fn schema() -> RefOr<Schema> {
        let file = ObjectBuilder::new().schema_type(Type::String);
        file.format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary))).into()
    }
}

impl ToSchema for Archive {}

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
    /// Accounts created at this time or later.
    #[param(format = DateTime)]
    created_since: Option<String>,
    #[param(format = DateTime)]
    created_before: Option<String>,
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
    /// Accounts that this import created or changed.
    #[param(example = "imp_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    import: Option<String>,
    /// Only those that the import created, or only those that it changed. Needs `import`.
    import_effect: Option<ImportEffect>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AccountListParameters {
    /// Defaults to `-created_at` (newest first). A minus means descending. Accounts that lack what they are sorted by come
    /// last in both directions. Amounts in different currencies aren't compared: the company's currency comes first, then
    /// the others by their code. `updated_at` lists accounts in the order of their last change, oldest
    /// first. That list never ends: it always has a `next_cursor`, and `has_more` says whether to continue at once. It
    /// takes no filters but `updated_after` and `deleted`.
    #[param(inline)]
    sort: Option<SortWord>,
    /// Only accounts that changed after this time, with `sort=updated_at`.
    #[param(format = DateTime)]
    updated_after: Option<String>,
    /// Also lists accounts that were deleted in the last 90 days, with `sort=updated_at`.
    deleted: Option<bool>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventFeedParameters {
    /// Only events of these types. Repeat it or separate values with commas. Defaults to all but `webhook.test`.
    #[param(rename = "type")]
    kind: Option<Vec<event::Kind>>,
    /// How many seconds to wait if there is no event yet. More than 25 counts as 25. Defaults to 0.
    wait: Option<u32>,
}

#[derive(ToSchema)]
pub struct UpsertRequest {
    /// The slug of the token's company.
    #[schema(example = "acme")]
    project: String,
    /// 1 to 255 characters, compared exactly and case-sensitively.
    #[schema(example = "CRM-00418")]
    imported_id: String,
    status: Option<Status>,
    custom_fields: Option<FieldChange>,
    /// Used when the account is created, or if `name_policy` is `update`. Ignored otherwise, whatever it is.
    #[schema(example = "Nordlys AS")]
    name: Option<String>,
    /// Defaults to `create`.
    name_policy: Option<NamePolicy>,
    /// Defaults to `set`.
    status_policy: Option<StatusPolicy>,
    /// Matched case-insensitively.
    #[schema(example = "SPRING_26")]
    promo_code: Option<String>,
    #[schema(schema_with = clearing_amount, required = false)]
    captured_value: Option<String>,
    /// An ISO 4217 code, in upper or lower case.
    #[schema(example = "EUR")]
    captured_value_currency: Option<String>,
}

/// Many upserts. The policies apply to every account that has none of its own.
#[derive(ToSchema)]
pub struct UpsertBatchRequest {
    /// The slug of the token's company.
    #[schema(example = "acme")]
    project: String,
    accounts: Vec<UpsertBatchAccount>,
    /// Defaults to `create`.
    name_policy: Option<NamePolicy>,
    /// Defaults to `set`.
    status_policy: Option<StatusPolicy>,
}

/// An account of a batch: the members of a single upsert.
#[derive(ToSchema)]
pub struct UpsertBatchAccount {
    /// Defaults to that of the batch, and must be the same.
    #[schema(example = "acme")]
    project: Option<String>,
    /// 1 to 255 characters, compared exactly and case-sensitively.
    #[schema(example = "CRM-00418")]
    imported_id: String,
    status: Option<Status>,
    custom_fields: Option<FieldChange>,
    /// Used when the account is created, or if `name_policy` is `update`. Ignored otherwise, whatever it is.
    #[schema(example = "Nordlys AS")]
    name: Option<String>,
    name_policy: Option<NamePolicy>,
    status_policy: Option<StatusPolicy>,
    /// Matched case-insensitively.
    #[schema(example = "SPRING_26")]
    promo_code: Option<String>,
    #[schema(schema_with = clearing_amount, required = false)]
    captured_value: Option<String>,
    /// An ISO 4217 code, in upper or lower case.
    #[schema(example = "EUR")]
    captured_value_currency: Option<String>,
}

#[derive(ToSchema)]
pub struct IngestRequest {
    events: Vec<ActivityEvent>,
    /// Fail the whole batch if an event is unmatched or invalid; `false` by default.
    strict: Option<bool>,
}

/// A usage signal. `imported_id` or `account_id` identifies the account.
#[derive(ToSchema)]
pub struct ActivityEvent {
    #[schema(example = "CRM-00418")]
    imported_id: Option<String>,
    /// The service's own account id, instead of `imported_id`.
    account_id: Option<String>,
    kind: activity::Kind,
    /// Required for `feature_used`.
    #[schema(example = "reports.export")]
    feature: Option<String>,
    /// ISO 8601. Defaults to the arrival time. At most 5 minutes ahead.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
    /// Up to 8 KiB. For `became_customer`, `captured_value` and `captured_value_currency` are read from it.
    #[schema(value_type = Option<Object>)]
    metadata: Option<String>,
    /// Makes the event safe to send again: an id is accepted only once within 90 days.
    event_id: Option<String>,
}

#[derive(ToSchema)]
pub struct AccountCreate {
    #[schema(example = "Nordlys AS")]
    name: String,
    /// Defaults to `prospect`.
    status: Option<Status>,
    imported_id: Option<String>,
    custom_fields: Option<FieldChange>,
    #[schema(schema_with = amount, required = false)]
    captured_value: Option<String>,
    #[schema(example = "EUR")]
    captured_value_currency: Option<String>,
    /// An active code of the company.
    promo_code: Option<String>,
    cadence_days: Option<i64>,
    #[schema(format = Date)]
    snoozed_until: Option<String>,
}

#[derive(ToSchema)]
pub struct AccountPatch {
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    status: Option<Status>,
    imported_id: Option<String>,
    #[schema(nullable = false)]
    custom_fields: Option<FieldChange>,
    #[schema(schema_with = clearing_amount, required = false)]
    captured_value: Option<String>,
    /// Null only together with a `captured_value` of null.
    captured_value_currency: Option<String>,
    /// An active code of the company. Null removes the account from its channel.
    promo_code: Option<String>,
    cadence_days: Option<i64>,
    #[schema(format = Date)]
    snoozed_until: Option<String>,
}

#[derive(ToSchema)]
pub struct StatusChange {
    status: Status,
    note: Option<String>,
}

#[derive(ToSchema)]
pub struct ContactCreate {
    kind: contact::Kind,
    note: Option<String>,
    /// Defaults to now. It can be in the past, but at most 5 minutes ahead.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
}

#[derive(ToSchema)]
pub struct ContactPatch {
    #[schema(nullable = false)]
    kind: Option<contact::Kind>,
    note: Option<String>,
    /// It can be in the past, but at most 5 minutes ahead.
    #[schema(nullable = false, format = DateTime)]
    occurred_at: Option<String>,
}

#[derive(ToSchema)]
pub struct NoteCreate {
    #[schema(example = "Prefers calls before noon.")]
    text: String,
    /// Show it above the timeline. Defaults to false.
    pinned: Option<bool>,
}

#[derive(ToSchema)]
pub struct NotePatch {
    #[schema(nullable = false)]
    text: Option<String>,
    #[schema(nullable = false)]
    pinned: Option<bool>,
}

#[derive(ToSchema)]
pub struct LookupRequest {
    /// A domain, or the address of one of its pages.
    #[schema(example = "nordlys.example")]
    domain: String,
    /// Create an account from what is found.
    create: Option<bool>,
    /// With `create`: replaces the name that was found.
    name: Option<String>,
    /// With `create`: defaults to `prospect`.
    status: Option<Status>,
    /// With `create`: added to `website` and `description`, or replaces them.
    custom_fields: Option<FieldChange>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ClientParameters {
    /// Defaults to `overdue` (most overdue first). `due_soon`: due within the next 7 days, soonest first.
    /// `snoozed`: ordered by the end of the snooze. `tracked`: all clients, ordered by due date.
    #[param(inline)]
    tab: Option<TabWord>,
}

#[derive(ToSchema)]
pub struct ConversationCreate {
    #[schema(example = "Offer for the spring")]
    subject: Option<String>,
    /// A word for the medium of the conversation. Defaults to `email`.
    #[schema(example = "email")]
    channel: Option<String>,
}

#[derive(ToSchema)]
pub struct MessageCreate {
    direction: Direction,
    body: String,
    /// Defaults to the conversation's channel.
    #[schema(example = "email")]
    channel: Option<String>,
    subject: Option<String>,
    /// Defaults to now. At most 5 minutes ahead.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
}

#[derive(ToSchema)]
pub struct MessagePatch {
    #[schema(nullable = false)]
    direction: Option<Direction>,
    #[schema(nullable = false)]
    body: Option<String>,
    #[schema(nullable = false, example = "email")]
    channel: Option<String>,
    subject: Option<String>,
    /// At most 5 minutes ahead.
    #[schema(nullable = false, format = DateTime)]
    occurred_at: Option<String>,
}

#[derive(ToSchema)]
pub struct AddressCreate {
    #[schema(example = "ana@nordlys.example")]
    address: String,
}

#[derive(ToSchema)]
pub struct ChannelName {
    #[schema(example = "Spring fair")]
    name: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExchangeRateParameters {
    /// Only rates of this currency.
    #[param(example = "CHF")]
    currency: Option<String>,
    /// Rates to this currency. Defaults to the company's default currency.
    #[param(example = "EUR")]
    base_currency: Option<String>,
}

#[derive(ToSchema)]
pub struct ExchangeRateCreate {
    /// An ISO 4217 code, in upper or lower case. Not the default currency.
    #[schema(example = "CHF")]
    currency: String,
    /// The first day that the rate is valid, in 1971 or later.
    #[schema(format = Date, example = "2026-11-01")]
    valid_from: String,
    #[schema(schema_with = rate)]
    rate: String,
}

#[derive(ToSchema)]
pub struct ExchangeRatePatch {
    #[schema(format = Date, nullable = false)]
    valid_from: Option<String>,
    #[schema(schema_with = rate, required = false)]
    rate: Option<String>,
}

#[derive(ToSchema)]
pub struct CodeCreate {
    #[schema(pattern = "^[A-Za-z0-9_-]+$", example = "SPRING_26")]
    code: String,
}

#[derive(ToSchema)]
pub struct CodePatch {
    archived: bool,
}

#[derive(ToSchema)]
pub struct CampaignCreate {
    #[schema(example = "Spring fair")]
    name: String,
    goal: Goal,
    /// Defaults to false.
    include_trials: Option<bool>,
    filters: Option<AccountFilters>,
}

#[derive(ToSchema)]
pub struct CampaignPatch {
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    goal: Option<Goal>,
    #[schema(nullable = false)]
    include_trials: Option<bool>,
    /// Replaces all filters. Null removes them.
    filters: Option<AccountFilters>,
}

/// A campaign to preview before it is created.
#[derive(ToSchema)]
pub struct CampaignPreview {
    goal: Goal,
    include_trials: Option<bool>,
    filters: Option<AccountFilters>,
}

/// The filters of the account list. Accounts must match all of them.
#[derive(ToSchema)]
pub struct AccountFilters {
    /// Beginnings of words in the name, or the imported_id.
    q: Option<String>,
    /// One or more.
    status: Option<Vec<Status>>,
    /// One or more channel ids.
    channel: Option<Vec<String>>,
    imported_id: Option<String>,
    tracked: Option<bool>,
    overdue: Option<bool>,
    /// False for accounts never seen.
    seen: Option<bool>,
    #[schema(format = DateTime)]
    seen_before: Option<String>,
    #[schema(format = DateTime)]
    seen_after: Option<String>,
    /// False for accounts never contacted.
    contacted: Option<bool>,
    #[schema(format = DateTime)]
    contacted_before: Option<String>,
    #[schema(format = DateTime)]
    contacted_after: Option<String>,
    /// Accounts created at this time or later.
    #[schema(format = DateTime)]
    created_since: Option<String>,
    #[schema(format = DateTime)]
    created_before: Option<String>,
    campaign_hold: Option<bool>,
    /// A condition for each key: a value, an array of values of which one must match, `{"exists": true}` or
    /// `{"begins_with": "a text"}`. Case is ignored. If the field is an array, one of its elements must match.
    #[schema(value_type = Option<Object>, example = json!({"plan": "pro", "country": ["de", "at"]}))]
    fields: Option<String>,
}

#[derive(ToSchema)]
pub struct WebhookCreate {
    /// Must use `https` and have no user information.
    #[schema(example = "https://hooks.acme.example/rapport")]
    url: String,
    #[schema(inline)]
    events: Selection,
    description: Option<String>,
    filters: Option<EventFilters>,
    /// Sent with every delivery.
    headers: Option<Vec<WebhookHeaderChange>>,
}

/// Conditions on the events of a webhook, in the words of the account filters. An event must match all of them. They are
/// judged when the event happens, by its payload. `webhook.test` is always sent.
#[derive(ToSchema)]
pub struct EventFilters {
    /// One or more stages that the account left. Only `account.status_changed` matches.
    from: Option<Vec<Status>>,
    /// One or more stages that the account moved to. For other events: the account's stage when they happened.
    to: Option<Vec<Status>>,
    /// One or more channel ids.
    channel: Option<Vec<String>>,
    /// A condition for each key of the account's custom fields: a value, an array of values of which one must match,
    /// `{"exists": true}` or `{"begins_with": "a text"}`. Case is ignored. If the field is an array, one of its elements
    /// must match.
    #[schema(value_type = Option<Object>, example = json!({"plan": "pro", "country": ["de", "at"]}))]
    fields: Option<String>,
}

#[derive(ToSchema)]
pub struct WebhookHeaderChange {
    /// The name of an HTTP header. Names that HTTP or this service owns are refused, such as `Host`, `Content-…`,
    /// `X-Service-…` and `webhook-…`.
    #[schema(example = "Authorization")]
    name: String,
    /// Printable ASCII characters. A secret header without a value keeps the value it has.
    #[schema(example = "Bearer 4f5c0d")]
    value: Option<String>,
    /// Whether the value is encrypted and never returned.
    #[schema(default = true)]
    secret: Option<bool>,
}

#[derive(ToSchema)]
pub struct WebhookPatch {
    #[schema(example = "https://hooks.acme.example/rapport", nullable = false)]
    url: Option<String>,
    #[schema(inline, nullable = false)]
    events: Option<Selection>,
    description: Option<String>,
    /// Replaces all conditions. Null removes them.
    filters: Option<EventFilters>,
    /// Replaces all headers. A secret header without a value keeps the value it has, unless the URL leads to another host.
    /// Null removes them all.
    headers: Option<Vec<WebhookHeaderChange>>,
}

#[derive(ToSchema)]
pub struct WebhookEnable {
    /// What to do with the held deliveries. Defaults to `send`.
    held: Option<Held>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeliveryListParameters {
    /// A webhook's id.
    webhook: Option<String>,
    state: Option<Shown>,
    /// The event type.
    #[param(rename = "type")]
    kind: Option<event::Kind>,
    /// An account's id.
    account: Option<String>,
    /// Created at this time or later.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Created before this time.
    #[param(format = DateTime)]
    until: Option<String>,
}

/// Selects deliveries. Filters that are left out match anything.
#[derive(ToSchema)]
pub struct RedeliverMany {
    /// A webhook's id.
    webhook: Option<String>,
    state: Option<Shown>,
    /// The event type.
    #[schema(rename = "type")]
    kind: Option<event::Kind>,
    /// An account's id.
    account: Option<String>,
    /// Created at this time or later.
    #[schema(format = DateTime)]
    since: Option<String>,
    /// Created before this time.
    #[schema(format = DateTime)]
    until: Option<String>,
    /// Only count the deliveries.
    #[schema(default = false)]
    preview: Option<bool>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UploadParameters {
    /// The file's name.
    filename: Option<String>,
    /// The file's encoding. Detected by default: from a byte order mark, otherwise UTF-8 if the file is valid UTF-8,
    /// otherwise Windows-1252.
    encoding: Option<String>,
    /// The file's delimiter: one character, or `tab`. Detected by default.
    delimiter: Option<String>,
}

/// How to import a file. Fields you leave out keep the import's current values.
#[derive(ToSchema)]
pub struct ImportRequest {
    /// The field for each column name: `imported_id`, `name`, `status`, `promo_code`, `captured_value`,
    /// `captured_value_currency`, `emails`, `last_contact_at`, `cadence_days`, `snoozed_until`, `custom_fields.KEY` or
    /// `ignore`. Columns that are not listed are ignored.
    #[schema(value_type = Option<Object>, example = json!({"Record ID": "imported_id", "Company": "name", "Plan": "custom_fields.plan"}))]
    mapping: Option<String>,
    /// How the numbers or dates of a column are written, by its name. Columns that are not listed keep their format. If
    /// they have none, the values decide. Values that can all be read in two ways, such as `03/04/2026`, are refused
    /// until you choose.
    #[schema(
        value_type = Option<HashMap<String, rapport_domain::import::format::Format>>,
        example = json!({"Revenue": "decimal_comma", "Last contact": "day_first"}),
    )]
    formats: Option<String>,
    /// The stage that a word in the status column means, or `keep` to leave the stage alone. Common words are known
    /// already. When the import starts, your choices are remembered for the company.
    #[schema(
        value_type = Option<HashMap<String, String>>,
        example = json!({"Hot lead": "in_negotiation", "n/a": "keep"}),
    )]
    status_words: Option<String>,
    mode: Option<Mode>,
    /// UTF-8 or a single-byte encoding, such as `windows-1252`.
    encoding: Option<String>,
    /// One character, or `tab`.
    delimiter: Option<String>,
}

#[derive(ToSchema)]
pub struct SettingsPatch {
    /// The company's name.
    #[schema(example = "Acme", nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    cadence_days: Option<i64>,
    /// One or more of `customer`, `in_trial`, `in_negotiation`.
    #[schema(nullable = false)]
    tracked_stages: Option<Vec<Status>>,
    #[schema(nullable = false)]
    digest_enabled: Option<bool>,
    #[schema(nullable = false)]
    digest_weekday: Option<Weekday>,
    #[schema(example = "Europe/Berlin", nullable = false)]
    time_zone: Option<String>,
    #[schema(example = "EUR", nullable = false)]
    default_currency: Option<String>,
    /// How many days the audit log is kept.
    #[schema(example = 730, nullable = false)]
    audit_days: Option<i64>,
    /// The lowest role that may export.
    #[schema(nullable = false)]
    export_role: Option<Grant>,
    /// The lowest role that may delete accounts and erase payloads.
    #[schema(nullable = false)]
    delete_role: Option<Grant>,
    /// After how many minutes a session that nobody uses ends.
    #[schema(example = 20160, nullable = false)]
    session_idle_minutes: Option<i64>,
    /// After how many minutes every session ends. Must not be below `session_idle_minutes`.
    #[schema(example = 129_600, nullable = false)]
    session_max_minutes: Option<i64>,
    /// Whether members need a second factor to log in. API tokens aren't affected.
    #[schema(nullable = false)]
    second_factor_required: Option<bool>,
    /// Whether a lifecycle event that is older than the account's latest move still moves the account.
    #[schema(nullable = false)]
    late_events_move: Option<bool>,
}

#[derive(ToSchema)]
pub struct SsoPut {
    /// Defaults to `off`.
    mode: Option<sso::Mode>,
    /// Exactly as the provider spells it. Must use `https` and have no user information, query or fragment.
    #[schema(example = "https://login.acme.example")]
    issuer: String,
    #[schema(example = "rapport")]
    client_id: String,
    /// Leave it out to keep the current one. Required for a new provider and if the issuer changes.
    client_secret: Option<String>,
    /// Email domains. Each has an effect once the server's administrator has confirmed it.
    #[schema(example = json!(["acme.example"]))]
    domains: Vec<String>,
    /// At most `member`, which is the default.
    default_role: Option<Role>,
    /// The id of an active owner who has a password. Required if the mode is `required`.
    #[schema(example = "per_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    break_glass_owner: Option<String>,
}

#[derive(ToSchema)]
pub struct TokenCreate {
    #[schema(example = "CRM sync")]
    name: String,
    /// Defaults to `admin`.
    role: Option<Role>,
    /// The id of the member whose token it is. It never does more than they may, and ends with their membership. Leave
    /// it out for a token of the company.
    #[schema(example = "per_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    owner: Option<String>,
    /// When it stops working: in the future, and at most ten years ahead. Leave it out for a token without an end.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Its own limit, in requests per second. It can't be changed later. Leave it out if only the server's limit is to
    /// apply, which applies in any case.
    #[schema(example = 20)]
    rate_limit: Option<i64>,
}

#[derive(ToSchema)]
pub struct MemberPatch {
    #[schema(nullable = false)]
    role: Option<Role>,
    #[schema(nullable = false)]
    active: Option<bool>,
}

/// The person to invite and their role.
#[derive(ToSchema)]
pub struct InvitationCreate {
    #[schema(example = "ana@acme.example")]
    email: String,
    /// Proposed to the person, who decides.
    name: Option<String>,
    role: Role,
}

/// The request of a person who accepts an invitation.
#[derive(ToSchema)]
pub struct InvitationAccept {
    /// The last segment of the link.
    #[schema(example = "rjn_0000000000000g7d4e…")]
    token: String,
    /// For a person who is new here. Defaults to the email address. Others keep their name.
    name: Option<String>,
    /// The new password of a person who is new here: 10 to 256 characters, and not easy to guess. Others send their
    /// existing password.
    password: String,
    /// Only for a link that was handed over. Defaults to `new`.
    login: Option<Way>,
}

#[derive(ToSchema)]
pub struct PasswordResetRequest {
    #[schema(example = "ana@acme.example")]
    email: String,
}

#[derive(ToSchema)]
pub struct PasswordResetConfirm {
    /// The last segment of the link.
    #[schema(example = "rpw_0000000000000g7d4e…")]
    token: String,
    /// Not easy to guess, also for people who know the person.
    password: String,
}

/// Who gets the digest.
#[derive(ToSchema)]
pub struct DigestSend {
    /// `everyone`, or a member's id.
    #[schema(default = "everyone", example = "everyone")]
    to: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rapport_domain::audience::Filter;
    use rapport_domain::id::ChannelId;
    use serde_json::json;

    #[test]
    fn the_filters_are_those_that_are_parsed() {
        let document = serde_json::to_value(crate::api::openapi::document()).unwrap();
        let at = "2026-01-01";
        let channel = ChannelId::from_bytes([1; 16]).to_string();
        let every = json!({
            "q": "x", "status": "lost", "channel": channel, "imported_id": "x", "tracked": true, "overdue": true,
            "seen": true, "seen_before": at, "seen_after": at, "contacted": true, "contacted_before": at,
            "contacted_after": at, "created_since": at, "created_before": at, "campaign_hold": true, "fields": {"a": 1},
        });
        let parsed = Filter::parse(every.as_object().unwrap(), "").unwrap().to_json();
        let read: BTreeSet<&String> = parsed.as_object().unwrap().keys().collect();
        let described =
            document["components"]["schemas"]["AccountFilters"]["properties"].as_object().unwrap();
        assert_eq!(read, described.keys().collect::<BTreeSet<_>>());
    }
}
