//! The account filter that lists, exports and campaigns share.
//!
//! A list takes it as query parameters, a campaign as a JSON object with the same names. Webhooks filter their events by
//! some of the same members (`event_filter`).

use serde_json::{Map, Value, json};

use crate::account::MAX_IMPORTED_ID;
use crate::custom_fields::MAX_KEY;
use crate::field_index;
use crate::id::{ChannelId, ImportId};
use crate::invalid::{Fault, Invalid, Members, as_bool, as_object, as_str, as_text};
use crate::pipeline::Status;
use crate::schema::words;
use crate::text::{Length, refuse_nul};
use crate::time::Time;

pub const MAX_CHANNELS: usize = 20;
/// How many custom fields a filter may test, and how many values it may list for one.
pub const MAX_FIELDS: usize = 10;
pub const MAX_FIELD_VALUES: usize = 20;
/// The maximum length of a text to filter by.
pub const MAX_TEXT: Length = Length::up_to(255);

/// A filter matches an account that meets every condition given. Absent conditions match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Each word of the query is a prefix of a word in the account's name or imported_id, or the whole query
    /// is.
    pub q: Option<String>,
    /// Any of these; empty means any status.
    pub statuses: Vec<Status>,
    /// Any of these; empty means any channel or none.
    pub channels: Vec<ChannelId>,
    pub imported_id: Option<String>,
    /// In one of the company's tracked stages.
    pub tracked: Option<bool>,
    /// Tracked, due for contact and not snoozed.
    pub overdue: Option<bool>,
    /// Ever seen, or never.
    pub seen: Option<bool>,
    /// Last seen before and after these times; an account that was never seen matches neither.
    pub seen_before: Option<Time>,
    pub seen_after: Option<Time>,
    /// Ever contacted, or never.
    pub contacted: Option<bool>,
    /// Last contacted before and after these times; an account that was never contacted matches neither.
    pub contacted_before: Option<Time>,
    pub contacted_after: Option<Time>,
    /// Created at this time or later, and before that one, to the millisecond of the account's id.
    pub created_since: Option<Time>,
    pub created_before: Option<Time>,
    /// Reactivated from Do not contact by activity, and not moved by an operator since.
    pub campaign_hold: Option<bool>,
    pub fields: Vec<FieldFilter>,
    /// Created or changed by an import. Only lists and exports take it: an import is removed, and a campaign stays.
    pub import: Option<ImportFilter>,
}

/// The accounts of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportFilter {
    pub id: ImportId,
    /// What the import did to them; `None` means either.
    pub effect: Option<ImportEffect>,
}

/// What an import did to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportEffect {
    Created,
    Changed,
}

impl ImportEffect {
    pub const ALL: [Self; 2] = [Self::Created, Self::Changed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let unknown = || Fault::not_one_of("unknown_choice", Self::ALL.map(Self::as_str));
        Self::ALL.into_iter().find(|effect| effect.as_str() == text).ok_or_else(unknown)
    }
}

words!(ImportEffect, "ImportEffect", "What an import did to an account.");

/// A condition on one custom field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFilter {
    pub key: String,
    pub test: FieldTest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldTest {
    /// Equal to one of these, as text, number or boolean, ignoring case. For an array, one element is.
    Is(Vec<String>),
    Exists,
    /// Text that begins with this, ignoring case.
    BeginsWith(String),
}

impl Filter {
    /// Whether no account can match, for example "never seen" with "seen before".
    pub fn contradicts_itself(&self) -> bool {
        let never = |ever: Option<bool>, before: Option<Time>, after: Option<Time>| {
            ever == Some(false) && (before.is_some() || after.is_some())
        };
        never(self.seen, self.seen_before, self.seen_after)
            || never(self.contacted, self.contacted_before, self.contacted_after)
    }

    /// The stages whose accounts it matches, if that is all it asks for.
    pub fn only_stages(&self) -> Option<Vec<Status>> {
        let no_other = Self { statuses: self.statuses.clone(), ..Self::default() };
        let stages = || if self.statuses.is_empty() { Status::ALL.to_vec() } else { self.statuses.clone() };
        (*self == no_other).then(stages)
    }

    /// This filter limited to these statuses and, if given, to this campaign hold; `None` if nothing can
    /// match.
    pub fn narrowed(&self, statuses: &[Status], campaign_hold: Option<bool>) -> Option<Self> {
        let asked = |status: &&Status| self.statuses.is_empty() || self.statuses.contains(status);
        let statuses: Vec<Status> = statuses.iter().filter(asked).copied().collect();
        let both = campaign_hold.zip(self.campaign_hold);
        if statuses.is_empty() || both.is_some_and(|(wanted, asked)| wanted != asked) {
            return None;
        }
        Some(Self { statuses, campaign_hold: campaign_hold.or(self.campaign_hold), ..self.clone() })
    }

    /// Reads a JSON object; the pointers of errors begin with `base`.
    pub fn parse(map: &Map<String, Value>, base: &str) -> Result<Self, Invalid> {
        let mut members = Members::under(map, base.to_owned());
        let time = |value: &Value| {
            Time::parse(as_str(value)?).map_err(|error| Fault::new("malformed", error.to_string()))
        };
        let filter = Self {
            q: members.optional("q", |value| as_text(value, MAX_TEXT)),
            statuses: members
                .optional("status", |value| several(value, Status::from_json))
                .unwrap_or_default(),
            channels: members.optional("channel", as_channels).unwrap_or_default(),
            imported_id: members.optional("imported_id", |value| as_text(value, MAX_IMPORTED_ID)),
            tracked: members.optional("tracked", as_bool),
            overdue: members.optional("overdue", as_bool),
            seen: members.optional("seen", as_bool),
            seen_before: members.optional("seen_before", time),
            seen_after: members.optional("seen_after", time),
            contacted: members.optional("contacted", as_bool),
            contacted_before: members.optional("contacted_before", time),
            contacted_after: members.optional("contacted_after", time),
            created_since: members.optional("created_since", time),
            created_before: members.optional("created_before", time),
            campaign_hold: members.optional("campaign_hold", as_bool),
            fields: read_fields(&mut members, base),
            import: None,
        };
        members.refuse_unknown();
        members.finish().map(|()| filter)
    }

    /// The same members again, without the absent ones.
    pub fn to_json(&self) -> Value {
        let list = |empty: bool, value: Value| if empty { Value::Null } else { value };
        let members = json!({
            "q": self.q,
            "status": list(self.statuses.is_empty(), json!(self.statuses)),
            "channel": list(self.channels.is_empty(), json!(self.channels)),
            "imported_id": self.imported_id,
            "tracked": self.tracked,
            "overdue": self.overdue,
            "seen": self.seen,
            "seen_before": self.seen_before,
            "seen_after": self.seen_after,
            "contacted": self.contacted,
            "contacted_before": self.contacted_before,
            "contacted_after": self.contacted_after,
            "created_since": self.created_since,
            "created_before": self.created_before,
            "campaign_hold": self.campaign_hold,
            "fields": list(self.fields.is_empty(), fields_to_json(&self.fields)),
        });
        without_nulls(members)
    }
}

/// The members of an object that aren't null.
pub(crate) fn without_nulls(object: Value) -> Value {
    let Value::Object(members) = object else { return object };
    Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect())
}

impl FieldTest {
    /// Whether a field with this value passes: the rule that storage follows with its index of fields.
    pub fn matches(&self, value: &Value) -> bool {
        let kept = field_index::texts_of(value);
        match self {
            Self::Is(values) => values
                .iter()
                .any(|asked| field_index::texts_asked(asked).iter().any(|asked| kept.contains(asked))),
            Self::Exists => !kept.is_empty(),
            Self::BeginsWith(text) => {
                let beginning = field_index::beginning(text);
                kept.iter().any(|text| text.starts_with(&beginning))
            }
        }
    }

    /// A value, an array of values, `{"exists": true}` or `{"begins_with": text}`.
    fn from_json(value: &Value) -> Result<Self, Fault> {
        match value {
            Value::Array(values) if values.is_empty() => Err(Fault::new("empty", "must not be empty")),
            Value::Array(values) => values.iter().map(as_value).collect::<Result<_, _>>().map(Self::Is),
            Value::Object(test) => match test.iter().next().filter(|_| test.len() == 1) {
                Some((word, Value::Bool(true))) if word == "exists" => Ok(Self::Exists),
                Some((word, text)) if word == "begins_with" => as_text(text, MAX_TEXT).map(Self::BeginsWith),
                _ => Err(unknown_test()),
            },
            value => Ok(Self::Is(vec![as_value(value)?])),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Is(values) if values.len() == 1 => json!(values[0]),
            Self::Is(values) => json!(values),
            Self::Exists => json!({"exists": true}),
            Self::BeginsWith(text) => json!({ "begins_with": text }),
        }
    }
}

fn unknown_test() -> Fault {
    let allowed = r#"must be a value, an array of values, {"exists": true} or {"begins_with": "text"}"#;
    Fault::new("unknown_test", allowed)
}

/// A string, number or boolean to compare with, as text.
fn as_value(value: &Value) -> Result<String, Fault> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(unknown_test()),
    };
    MAX_TEXT.or_empty().check(&text)?;
    Ok(text)
}

/// Reads the member `fields` of a filter whose pointers begin with `base`.
pub(crate) fn read_fields(members: &mut Members, base: &str) -> Vec<FieldFilter> {
    let Some(fields) = members.optional("fields", as_object) else { return Vec::new() };
    let fields = parse_fields(fields, &format!("{base}/fields"));
    let fields = fields.map_err(|invalid| members.absorb(invalid)).unwrap_or_default();
    if let Err(fault) = check_fields(&fields) {
        members.fault("fields", fault);
    }
    fields
}

/// The member `fields` of a filter.
pub(crate) fn fields_to_json(fields: &[FieldFilter]) -> Value {
    let fields = fields.iter().map(|FieldFilter { key, test }| (key.clone(), test.to_json()));
    Value::Object(fields.collect())
}

fn parse_fields(fields: &Map<String, Value>, base: &str) -> Result<Vec<FieldFilter>, Invalid> {
    let mut members = Members::under(fields, base.to_owned());
    let mut found = Vec::with_capacity(fields.len());
    for (key, value) in fields {
        match MAX_KEY.check(key).and_then(|()| FieldTest::from_json(value)) {
            Ok(test) => found.push(FieldFilter { key: key.clone(), test }),
            Err(fault) => members.fault(&key.replace('\0', ""), fault),
        }
    }
    members.finish().map(|()| found)
}

/// Checks that the filter doesn't test too many fields or values.
pub fn check_fields(fields: &[FieldFilter]) -> Result<(), Fault> {
    let too_many = |what, most| Fault::new("too_many", format!("must have at most {most} {what}"));
    if fields.len() > MAX_FIELDS {
        return Err(too_many("fields", MAX_FIELDS));
    }
    let is_long =
        |field: &FieldFilter| matches!(&field.test, FieldTest::Is(values) if values.len() > MAX_FIELD_VALUES);
    if fields.iter().any(is_long) { Err(too_many("values per field", MAX_FIELD_VALUES)) } else { Ok(()) }
}

/// Checks that there aren't too many channels.
pub fn check_channels(channels: &[ChannelId]) -> Result<(), Fault> {
    if channels.len() > MAX_CHANNELS {
        return Err(Fault::new("too_many", format!("must list at most {MAX_CHANNELS} channels")));
    }
    Ok(())
}

pub fn import_id(text: &str) -> Result<ImportId, Fault> {
    text.parse().map_err(|_| Fault::new("malformed", "must be an import id"))
}

pub fn channel_id(text: &str) -> Result<ChannelId, Fault> {
    text.parse().map_err(|_| Fault::new("malformed", "must be a channel id"))
}

pub(crate) fn as_channels(value: &Value) -> Result<Vec<ChannelId>, Fault> {
    let channels = several(value, |value| {
        let text = as_str(value)?;
        refuse_nul(text)?;
        channel_id(text)
    })?;
    check_channels(&channels).map(|()| channels)
}

/// One value, or an array of them.
pub(crate) fn several<T: PartialEq>(
    value: &Value,
    parse: impl Fn(&Value) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let mut parsed = Vec::with_capacity(values.len());
    for value in values {
        let value = parse(value)?;
        if !parsed.contains(&value) {
            parsed.push(value);
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &Value) -> Result<Filter, Vec<(String, &'static str)>> {
        Filter::parse(value.as_object().unwrap(), "/filters")
            .map_err(|invalid| invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect())
    }

    #[test]
    fn a_filter_reads_back_as_it_was_given() {
        let channel = ChannelId::from_bytes([3; 16]).to_string();
        let given = json!({
            "q": "nord", "status": ["prospect", "lost"], "channel": [channel], "imported_id": "crm-1",
            "tracked": true, "overdue": false, "seen": true, "seen_before": "2026-05-12T00:00:00Z",
            "seen_after": "2026-01-01T00:00:00Z", "contacted": true, "contacted_before": "2026-05-12T08:30:00Z",
            "contacted_after": "2026-01-02T00:00:00Z", "campaign_hold": false,
            "fields": {"city": {"begins_with": "Ber"}, "plan": "pro", "tags": ["a", "7"], "vat/id": {"exists": true}},
        });
        let filter = parse(&given).unwrap();
        assert_eq!(filter.to_json(), given);
        assert_eq!(parse(&filter.to_json()), Ok(filter));
        assert_eq!(parse(&json!({})), Ok(Filter::default()));
        assert_eq!(Filter::default().to_json(), json!({}));
    }

    #[test]
    fn a_single_value_counts_as_a_list_and_numbers_as_text() {
        let filter =
            parse(&json!({"status": "lost", "fields": {"seats": 12, "vip": true, "of": [1, "1", 2]}}));
        let filter = filter.unwrap();
        assert_eq!(filter.statuses, [Status::Lost]);
        let is = |key: &str, values: &[&str]| FieldFilter {
            key: key.to_owned(),
            test: FieldTest::Is(values.iter().map(|value| (*value).to_owned()).collect()),
        };
        assert_eq!(filter.fields, [is("of", &["1", "1", "2"]), is("seats", &["12"]), is("vip", &["true"])]);
        assert_eq!(parse(&json!({"status": ["lost", "lost"]})).unwrap().statuses, [Status::Lost]);
    }

    #[test]
    fn every_fault_has_its_place() {
        let faults = parse(&json!({
            "status": ["customer", "nope"], "channel": "x", "seen": 1, "seen_before": "then", "more": 1, "q": "a\0",
            "fields": {"a/b": null, "c": [], "d": {"like": "x"}, "e": {"exists": false}, "f": {"begins_with": ""}},
        }));
        let expected = [
            ("/filters/q", "nul_character"),
            ("/filters/status", "unknown_status"),
            ("/filters/channel", "malformed"),
            ("/filters/seen", "wrong_type"),
            ("/filters/seen_before", "malformed"),
            ("/filters/fields/a~1b", "unknown_test"),
            ("/filters/fields/c", "empty"),
            ("/filters/fields/d", "unknown_test"),
            ("/filters/fields/e", "unknown_test"),
            ("/filters/fields/f", "empty"),
            ("/filters/more", "unknown_member"),
        ];
        assert_eq!(faults.unwrap_err(), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
        let many: Map<String, Value> = (0..=MAX_FIELDS).map(|n| (format!("k{n}"), json!(n))).collect();
        assert_eq!(parse(&json!({ "fields": many })).unwrap_err()[0].1, "too_many");
        let values: Vec<usize> = (0..=MAX_FIELD_VALUES).collect();
        assert_eq!(parse(&json!({"fields": {"k": values}})).unwrap_err()[0].1, "too_many");
    }

    #[test]
    fn a_field_passes_by_what_it_says() {
        let is = |values: &[&str]| FieldTest::Is(values.iter().map(|value| (*value).to_owned()).collect());
        let begins = |text: &str| FieldTest::BeginsWith(text.to_owned());
        let table = [
            (json!("Pro"), is(&["basic", "pro"]), true),
            (json!("Pro"), is(&["basic"]), false),
            (json!(12), is(&["12.0"]), true),
            (json!(true), is(&["TRUE"]), true),
            (json!(["de", "AT"]), is(&["at"]), true),
            (json!("Berlin"), begins("ber"), true),
            (json!(["Oslo", "Berlin"]), begins("ber"), true),
            (json!("Berlin"), begins("erl"), false),
            (json!(12), begins("1"), false),
            (json!({"a": 1}), FieldTest::Exists, true),
            (json!(false), FieldTest::Exists, true),
            (Value::Null, FieldTest::Exists, false),
            (Value::Null, is(&[""]), false),
        ];
        for (value, test, passes) in table {
            assert_eq!(test.matches(&value), passes, "{value} by {test:?}");
        }
    }

    #[test]
    fn narrowing_keeps_what_both_allow() {
        let filter = Filter { statuses: vec![Status::Lost, Status::Customer], ..Filter::default() };
        let narrowed = filter.narrowed(&[Status::Prospect, Status::Lost], Some(false)).unwrap();
        assert_eq!((narrowed.statuses, narrowed.campaign_hold), (vec![Status::Lost], Some(false)));
        assert_eq!(filter.narrowed(&[Status::Prospect], None), None);
        let held = Filter { campaign_hold: Some(true), ..Filter::default() };
        assert_eq!(held.narrowed(&Status::ALL, Some(false)), None);
        assert_eq!(held.narrowed(&Status::ALL, None).unwrap().campaign_hold, Some(true));
    }

    #[test]
    fn never_and_a_time_contradict() {
        let at = Some(Time::from_micros(0));
        assert!(Filter { seen: Some(false), seen_after: at, ..Filter::default() }.contradicts_itself());
        assert!(
            Filter { contacted: Some(false), contacted_before: at, ..Filter::default() }.contradicts_itself()
        );
        assert!(
            !Filter { contacted: Some(true), contacted_before: at, ..Filter::default() }.contradicts_itself()
        );
        assert!(
            !Filter { seen: Some(false), contacted_before: at, ..Filter::default() }.contradicts_itself()
        );
    }
}
