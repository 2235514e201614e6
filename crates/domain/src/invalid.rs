//! Errors in a request's members, and a reader that collects all of them.

use jiff::civil::Date;
use serde_json::{Map, Value};
use utoipa::openapi::schema::ObjectBuilder;

use crate::schema::one_of;
use crate::text;

/// One error at one place in the request.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct FieldError {
    /// A JSON pointer (RFC 6901) into the request body, or a query parameter's name.
    #[schema(example = "/captured_value")]
    pub pointer: String,
    #[schema(schema_with = Fault::code_schema)]
    pub code: &'static str,
    pub detail: String,
}

/// All errors of a request. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} invalid field(s)", .0.len())]
pub struct Invalid(pub Vec<FieldError>);

impl Invalid {
    pub fn one(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self(vec![FieldError { pointer: pointer.into(), code, detail: detail.into() }])
    }

    /// The same errors in a part of a larger request.
    #[must_use]
    pub fn under(mut self, base: &str) -> Self {
        for error in &mut self.0 {
            error.pointer.insert_str(0, base);
        }
        self
    }
}

/// An error that isn't tied to a member yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub code: &'static str,
    pub detail: String,
}

impl Fault {
    /// Every code that a field or parameter can be refused with.
    pub const CODES: [&str; 84] = [
        "account_mismatch",
        "already_converted",
        "ambiguous",
        "bad_character",
        "bad_characters",
        "bad_host",
        "bad_port",
        "bad_redirect",
        "bad_url",
        "cursor_expired",
        "default_currency",
        "empty",
        "filter_required",
        "forbidden_address",
        "fragment",
        "in_the_future",
        "in_the_past",
        "incomplete",
        "invalid_cursor",
        "invalid_token",
        "invisible",
        "malformed",
        "missing_host",
        "negative",
        "no_address",
        "no_header",
        "no_page",
        "not_an_owner",
        "not_clearable",
        "not_confirmed",
        "not_html",
        "not_https",
        "not_trackable",
        "nul_character",
        "only_with_create",
        "only_with_sort",
        "out_of_range",
        "repeated",
        "required",
        "reserved_name",
        "sample_account",
        "timed_out",
        "too_large",
        "too_long",
        "too_many",
        "too_many_columns",
        "too_many_keys",
        "too_many_redirects",
        "too_personal",
        "too_short",
        "too_weak",
        "unchanged",
        "unknown_action",
        "unknown_audience",
        "unknown_choice",
        "unknown_column",
        "unknown_currency",
        "unknown_direction",
        "unknown_encoding",
        "unknown_event",
        "unknown_field",
        "unknown_format",
        "unknown_goal",
        "unknown_kind",
        "unknown_login",
        "unknown_member",
        "unknown_mode",
        "unknown_parameter",
        "unknown_person",
        "unknown_policy",
        "unknown_promo_code",
        "unknown_role",
        "unknown_sort",
        "unknown_state",
        "unknown_status",
        "unknown_tab",
        "unknown_test",
        "unknown_time_zone",
        "unknown_weekday",
        "unmatched",
        "unreachable",
        "userinfo",
        "wrong_password",
        "wrong_type",
    ];

    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        debug_assert!(Self::CODES.contains(&code), "the list of codes lacks {code}");
        Self { code, detail: detail.into() }
    }

    pub(crate) fn code_schema() -> ObjectBuilder {
        one_of(Self::CODES).examples(["malformed"])
    }

    /// A member that always has a value was set to null in an edit.
    pub fn not_clearable(remedy: &str) -> Self {
        Self::new("not_clearable", format!("can't be null; {remedy}"))
    }

    /// The value is not one of a fixed set of words.
    pub fn not_one_of<'a>(code: &'static str, allowed: impl IntoIterator<Item = &'a str>) -> Self {
        let words: Vec<&str> = allowed.into_iter().collect();
        Self::new(code, format!("must be one of: {}", words.join(", ")))
    }
}

/// Room for the members of most requests, so that reading them allocates once.
const USUAL_MEMBERS: usize = 16;

/// Reads the members of one JSON object and collects every error.
///
/// Each accessor returns `None` both if a member is absent and if it is invalid; `build` and `finish` tell
/// the two apart, so a parser reads everything first and decides once.
pub(crate) struct Members<'a> {
    map: &'a Map<String, Value>,
    base: String,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl<'a> Members<'a> {
    pub fn of(map: &'a Map<String, Value>) -> Self {
        Self::under(map, String::new())
    }

    pub fn under(map: &'a Map<String, Value>, base: String) -> Self {
        Self { map, base, known: Vec::with_capacity(USUAL_MEMBERS), errors: Vec::new() }
    }

    /// The member as sent, `null` included.
    pub fn raw(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.map.get(name)
    }

    /// The member unless it is absent or `null`.
    pub fn given(&mut self, name: &'static str) -> Option<&'a Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    /// Whether an edit clears a member with `null`. The value for it is up to the caller.
    pub fn is_cleared(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(Value::is_null)
    }

    pub fn fault(&mut self, name: &str, fault: Fault) {
        let pointer = format!("{}/{}", self.base, escape(name));
        self.errors.push(FieldError { pointer, code: fault.code, detail: fault.detail });
    }

    /// An error in the members as a whole, not in a single one.
    pub fn fault_of_all(&mut self, fault: Fault) {
        self.errors.push(FieldError { pointer: self.base.clone(), code: fault.code, detail: fault.detail });
    }

    /// Parses a member that may be absent or `null`.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Option<T> {
        let value = self.given(name)?;
        parse(value).map_err(|fault| self.fault(name, fault)).ok()
    }

    /// Parses a member of an edit that always has a value: absent leaves it as it is, and `null`, which clears members
    /// that can be empty, is an error.
    pub fn replaceable<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Option<T> {
        if self.is_cleared(name) {
            self.known.push(name);
            self.fault(name, Fault::not_clearable("leave it out to keep its value"));
            return None;
        }
        self.optional(name, parse)
    }

    /// Parses a member that must be present.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Option<T> {
        if self.given(name).is_none() {
            self.fault(name, Fault::new("required", "is required"));
            return None;
        }
        self.optional(name, parse)
    }

    /// Parses a member that `null` clears: `None` means absent, `Some(None)` means null.
    #[expect(clippy::option_option, reason = "absent, null and a value are three different things")]
    pub fn clearable<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Option<Option<T>> {
        match self.raw(name)? {
            Value::Null => Some(None),
            value => parse(value).map_err(|fault| self.fault(name, fault)).ok().map(Some),
        }
    }

    /// Reports every member that wasn't read. Call it last.
    pub fn refuse_unknown(&mut self) {
        let unknown: Vec<String> =
            self.map.keys().filter(|key| !self.known.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            self.fault(&key, Fault::new("unknown_member", "is not a known field"));
        }
    }

    pub fn absorb(&mut self, invalid: Invalid) {
        self.errors.extend(invalid.0);
    }

    pub fn has_faults(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The value made of the members, unless there are errors. The closure returns `None` only if a required
    /// member is missing or invalid, which is an error already.
    pub fn build<T>(self, build: impl FnOnce() -> Option<T>) -> Result<T, Invalid> {
        if self.errors.is_empty()
            && let Some(built) = build()
        {
            return Ok(built);
        }
        Err(Invalid(self.errors))
    }

    /// Like [`Members::build`], for a parser that requires nothing.
    pub fn finish(self) -> Result<(), Invalid> {
        if self.errors.is_empty() { Ok(()) } else { Err(Invalid(self.errors)) }
    }
}

/// Checks a request that takes no members.
pub fn no_members(body: &Map<String, Value>) -> Result<(), Invalid> {
    let mut members = Members::of(body);
    members.refuse_unknown();
    members.finish()
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

// Parsers of single values, for the accessors above.

pub(crate) fn as_str(value: &Value) -> Result<&str, Fault> {
    value.as_str().ok_or_else(|| Fault::new("wrong_type", "must be a string"))
}

pub(crate) fn as_text(value: &Value, limit: text::Length) -> Result<String, Fault> {
    let text = as_str(value)?;
    limit.check(text)?;
    Ok(text.to_owned())
}

pub(crate) fn as_date(value: &Value) -> Result<Date, Fault> {
    let malformed = || Fault::new("malformed", "must be a date in the form YYYY-MM-DD");
    let text = as_str(value)?;
    if text.len() != 10 {
        return Err(malformed());
    }
    text.parse().map_err(|_| malformed())
}

pub(crate) fn as_bool(value: &Value) -> Result<bool, Fault> {
    value.as_bool().ok_or_else(|| Fault::new("wrong_type", "must be true or false"))
}

pub(crate) fn as_object(value: &Value) -> Result<&Map<String, Value>, Fault> {
    value.as_object().ok_or_else(|| Fault::new("wrong_type", "must be an object"))
}

pub(crate) fn as_array(value: &Value) -> Result<&Vec<Value>, Fault> {
    value.as_array().ok_or_else(|| Fault::new("wrong_type", "must be an array"))
}

pub(crate) fn as_integer(value: &Value, range: std::ops::RangeInclusive<i64>) -> Result<i64, Fault> {
    if !value.is_number() {
        return Err(Fault::new("wrong_type", "must be a whole number"));
    }
    value.as_i64().filter(|number| range.contains(number)).ok_or_else(|| {
        Fault::new(
            "out_of_range",
            format!("must be a whole number from {} to {}", range.start(), range.end()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_faults_are_found_at_once() {
        let body = json!({"a/b": 1, "count": "x", "flag": 0});
        let mut members = Members::of(body.as_object().unwrap());
        members.required("name", as_str);
        members.optional("count", |value| as_integer(value, 1..=5));
        members.optional("flag", as_bool);
        members.refuse_unknown();
        let found: Vec<(String, &str)> =
            members.finish().unwrap_err().0.into_iter().map(|error| (error.pointer, error.code)).collect();
        let expected = [
            ("/name", "required"),
            ("/count", "wrong_type"),
            ("/flag", "wrong_type"),
            ("/a~1b", "unknown_member"),
        ];
        assert_eq!(found, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }

    #[test]
    fn a_value_is_built_unless_there_are_errors() {
        let table = [
            (json!({"a": true}), Ok((true, None))),
            (json!({"a": true, "b": false}), Ok((true, Some(false)))),
            (json!({}), Err(vec!["required"])),
            (json!({"a": null, "b": 1}), Err(vec!["required", "wrong_type"])),
            (json!({"a": 1}), Err(vec!["wrong_type"])),
            (json!({"a": true, "c": 1}), Err(vec!["unknown_member"])),
        ];
        for (body, expected) in table {
            let mut members = Members::of(body.as_object().unwrap());
            let a = members.required("a", as_bool);
            let b = members.optional("b", as_bool);
            members.refuse_unknown();
            let built = members.build(|| Some((a?, b)));
            let built = built.map_err(|invalid| invalid.0.iter().map(|error| error.code).collect::<Vec<_>>());
            assert_eq!(built, expected, "{body}");
        }
    }

    #[test]
    fn a_request_without_members_is_empty() {
        assert_eq!(no_members(&Map::new()), Ok(()));
        let body = json!({"a": null});
        assert_eq!(no_members(body.as_object().unwrap()).unwrap_err().0[0].code, "unknown_member");
    }

    #[test]
    fn null_is_absent_unless_it_clears() {
        let body = json!({"a": null});
        let mut members = Members::of(body.as_object().unwrap());
        assert_eq!(members.optional("a", as_bool), None);
        assert_eq!(members.clearable("a", as_bool), Some(None));
        assert_eq!(members.clearable("b", as_bool), None);
        assert_eq!(members.replaceable("b", as_bool), None);
        assert!(!members.has_faults());
        assert_eq!(members.replaceable("a", as_bool), None);
        members.refuse_unknown();
        let faults = members.finish().unwrap_err().0;
        assert_eq!((faults.len(), faults[0].pointer.as_str(), faults[0].code), (1, "/a", "not_clearable"));
    }
}
