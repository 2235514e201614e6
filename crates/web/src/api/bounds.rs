//! The limits that are enforced, as part of the schemas that they apply to. The derive macros of the schemas only take
//! numbers, and a limit has its number in one place already.

use std::ops::RangeInclusive;

use rapport_app::read::DEFAULT_LIMIT;
use rapport_domain::account::{MAX_IMPORTED_ID, MAX_NAME, MAX_NOTE};
use rapport_domain::activity::{MAX_EVENT_ID, MAX_EVENTS, MAX_FEATURE};
use rapport_domain::audit::AUDIT_DAYS;
use rapport_domain::channel::MAX_CODE_CHARS;
use rapport_domain::company::CADENCE_DAYS;
use rapport_domain::conversation::{MAX_BODY, MAX_CHANNEL, MAX_SUBJECT};
use rapport_domain::credential::TOKEN_RATE_LIMIT;
use rapport_domain::import::MAX_FILENAME;
use rapport_domain::member::MAX_EMAIL_CHARS;
use rapport_domain::password::{MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS};
use rapport_domain::session::{IDLE_MINUTES, MAX_MINUTES};
use rapport_domain::text::Length;
use rapport_domain::upsert_batch::MAX_ACCOUNTS;
use rapport_domain::webhook::MAX_DESCRIPTION;
use rapport_domain::{campaign, channel, company, note, sso, webhook_header};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::{AllOf, Object, Schema};
use utoipa::openapi::{Components, RefOr};

enum Bound {
    Text(Length),
    Number(RangeInclusive<i64>),
    AtMost(i64),
    /// At least one and at most this many.
    Items(usize),
    /// Larger pages than the largest are cut, not refused.
    PageSize,
    /// Larger numbers than the largest count as that one.
    AnySize,
}

use Bound::{AnySize, AtMost, Items, Number, PageSize, Text};

const CODE: Length = Length::up_to(MAX_CODE_CHARS);
const EMAIL: Length = Length { min: 0, max: MAX_EMAIL_CHARS };
const PASSWORD: Length = Length { min: MIN_PASSWORD_CHARS, max: MAX_PASSWORD_CHARS };

/// The members of schemas that have a limit.
const MEMBERS: [(&str, &str, Bound); 64] = [
    ("Account", "cadence_days", Number(CADENCE_DAYS)),
    ("AccountCreate", "name", Text(MAX_NAME)),
    ("AccountCreate", "imported_id", Text(MAX_IMPORTED_ID)),
    ("AccountCreate", "promo_code", Text(CODE.or_empty())),
    ("AccountCreate", "cadence_days", Number(CADENCE_DAYS)),
    ("AccountPatch", "name", Text(MAX_NAME)),
    ("AccountPatch", "imported_id", Text(MAX_IMPORTED_ID)),
    ("AccountPatch", "promo_code", Text(CODE.or_empty())),
    ("AccountPatch", "cadence_days", Number(CADENCE_DAYS)),
    ("ActivityEvent", "event_id", Text(MAX_EVENT_ID.or_empty())),
    ("ActivityEvent", "feature", Text(MAX_FEATURE.or_empty())),
    ("AddressCreate", "address", Text(EMAIL)),
    ("CampaignCounts", "count", AtMost(campaign::MAX_COUNT)),
    ("CampaignCreate", "name", Text(campaign::MAX_NAME)),
    ("CampaignPatch", "name", Text(campaign::MAX_NAME)),
    ("ChannelName", "name", Text(channel::MAX_NAME)),
    ("CodeCreate", "code", Text(CODE)),
    ("ContactCreate", "note", Text(MAX_NOTE.or_empty())),
    ("ContactPatch", "note", Text(MAX_NOTE.or_empty())),
    ("ConversationCreate", "channel", Text(MAX_CHANNEL)),
    ("ConversationCreate", "subject", Text(MAX_SUBJECT.or_empty())),
    ("IngestRequest", "events", Items(MAX_EVENTS)),
    ("InvitationAccept", "name", Text(company::MAX_NAME)),
    ("InvitationAccept", "password", Text(PASSWORD.or_empty())),
    ("InvitationCreate", "email", Text(EMAIL)),
    ("InvitationCreate", "name", Text(company::MAX_NAME)),
    ("LookupRequest", "name", Text(MAX_NAME)),
    ("MessageCreate", "body", Text(MAX_BODY)),
    ("MessageCreate", "channel", Text(MAX_CHANNEL)),
    ("MessageCreate", "subject", Text(MAX_SUBJECT.or_empty())),
    ("MessagePatch", "body", Text(MAX_BODY)),
    ("MessagePatch", "channel", Text(MAX_CHANNEL)),
    ("MessagePatch", "subject", Text(MAX_SUBJECT.or_empty())),
    ("NoteCreate", "text", Text(note::MAX_TEXT)),
    ("NotePatch", "text", Text(note::MAX_TEXT)),
    ("PasswordResetConfirm", "password", Text(PASSWORD)),
    ("PasswordResetRequest", "email", Text(EMAIL)),
    ("Settings", "audit_days", Number(AUDIT_DAYS)),
    ("Settings", "cadence_days", Number(CADENCE_DAYS)),
    ("Settings", "session_idle_minutes", Number(IDLE_MINUTES)),
    ("Settings", "session_max_minutes", Number(MAX_MINUTES)),
    ("SettingsPatch", "audit_days", Number(AUDIT_DAYS)),
    ("SettingsPatch", "cadence_days", Number(CADENCE_DAYS)),
    ("SettingsPatch", "name", Text(company::MAX_NAME)),
    ("SettingsPatch", "session_idle_minutes", Number(IDLE_MINUTES)),
    ("SettingsPatch", "session_max_minutes", Number(MAX_MINUTES)),
    ("SettingsPatch", "tracked_stages", Items(company::TrackedStages::ALLOWED.len())),
    ("SsoPut", "client_id", Text(sso::MAX_CLIENT_ID)),
    ("SsoPut", "client_secret", Text(sso::MAX_CLIENT_SECRET)),
    ("SsoPut", "domains", Items(sso::MAX_DOMAINS)),
    ("StatusChange", "note", Text(MAX_NOTE.or_empty())),
    ("TokenCreate", "name", Text(company::MAX_NAME)),
    ("TokenCreate", "rate_limit", Number(TOKEN_RATE_LIMIT)),
    ("UpsertBatchAccount", "imported_id", Text(MAX_IMPORTED_ID)),
    ("UpsertBatchAccount", "name", Text(MAX_NAME)),
    ("UpsertBatchAccount", "promo_code", Text(CODE.or_empty())),
    ("UpsertBatchRequest", "accounts", Items(MAX_ACCOUNTS)),
    ("UpsertRequest", "imported_id", Text(MAX_IMPORTED_ID)),
    ("UpsertRequest", "name", Text(MAX_NAME)),
    ("UpsertRequest", "promo_code", Text(CODE.or_empty())),
    ("WebhookCreate", "description", Text(MAX_DESCRIPTION.or_empty())),
    ("WebhookHeaderChange", "name", Text(webhook_header::MAX_NAME)),
    ("WebhookHeaderChange", "value", Text(webhook_header::MAX_VALUE)),
    ("WebhookPatch", "description", Text(MAX_DESCRIPTION.or_empty())),
];

/// The query parameters that have a limit.
const PARAMETERS: [(&str, Bound); 3] =
    [("filename", Text(MAX_FILENAME)), ("limit", PageSize), ("wait", AnySize)];

pub fn add_to_schemas(components: &mut Components) {
    for (name, member, bound) in &MEMBERS {
        let schema = components.schemas.get_mut(*name);
        let found = schema.and_then(|schema| member_of(schema, member));
        bound.add(found.unwrap_or_else(|| panic!("{name}.{member} has a limit but no schema")));
    }
}

pub fn add_to_parameters(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(Parameter { name, schema, .. }) = parameter else { continue };
        let known = PARAMETERS.iter().find(|(known, _)| known == name);
        if let (Some((_, bound)), Some(RefOr::T(schema))) = (known, schema) {
            bound.add(schema);
        }
    }
}

/// A member of a schema, or of the part that a schema adds to others.
fn member_of<'a>(schema: &'a mut RefOr<Schema>, member: &str) -> Option<&'a mut Schema> {
    let RefOr::T(schema) = schema else { return None };
    match schema {
        Schema::Object(Object { properties, .. }) => match properties.get_mut(member)? {
            RefOr::T(found) => Some(found),
            RefOr::Ref(_) => None,
        },
        Schema::AllOf(AllOf { items, .. }) => items.iter_mut().find_map(|part| member_of(part, member)),
        _ => None,
    }
}

impl Bound {
    fn add(&self, schema: &mut Schema) {
        match (self, schema) {
            (Text(Length { min, max }), Schema::Object(text)) => {
                text.min_length = Some(*min).filter(|min| *min > 0);
                text.max_length = Some(*max);
            }
            (Number(range), Schema::Object(number)) => {
                number.minimum = Some(whole(*range.start()));
                number.maximum = Some(whole(*range.end()));
            }
            (AtMost(max), Schema::Object(number)) => number.maximum = Some(whole(*max)),
            (Items(max), Schema::Array(list)) => {
                list.min_items = Some(1);
                list.max_items = Some(*max);
            }
            (PageSize, Schema::Object(number)) => {
                number.format = None;
                number.minimum = Some(whole(1));
                number.default = Some(DEFAULT_LIMIT.into());
            }
            (AnySize, Schema::Object(number)) => number.format = None,
            _ => panic!("a limit doesn't fit the type that it applies to"),
        }
    }
}

fn whole(number: i64) -> utoipa::Number {
    utoipa::Number::Int(isize::try_from(number).unwrap_or(isize::MAX))
}
