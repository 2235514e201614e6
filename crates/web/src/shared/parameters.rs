//! Query parameters. Reading them collects all errors, including unknown parameters, instead of only the first.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use rapport_app::read::{DEFAULT_LIMIT, MAX_LIMIT};
use rapport_domain::custom_fields::MAX_KEY;
use rapport_domain::id::base32;
use rapport_domain::invalid::{Fault, FieldError, Invalid};
use rapport_domain::text::{Length, refuse_nul};
use rapport_domain::time::Time;

use crate::edge::problem::Problem;

const MAX_TEXT: Length = Length::up_to(255);

/// The parameters of one request.
#[derive(Debug, Default)]
pub struct Parameters {
    pairs: Vec<(String, String)>,
    known: Vec<&'static str>,
    known_prefixes: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl<S: Sync> FromRequestParts<S> for Parameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let Query(pairs) = Query::try_from_uri(&parts.uri).unwrap_or_default();
        Ok(Self { pairs, ..Self::default() })
    }
}

impl Parameters {
    /// The parameters of a page address.
    pub fn of(pairs: Vec<(String, String)>) -> Self {
        Self { pairs, ..Self::default() }
    }

    pub fn fault(&mut self, name: &str, fault: Fault) {
        self.errors.push(FieldError { pointer: name.to_owned(), code: fault.code, detail: fault.detail });
    }

    /// A parameter that is given at most once. An empty one counts as not given.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Option<T> {
        self.known.push(name);
        let mut given = self.pairs.iter().filter(|(given, value)| given == name && !value.is_empty());
        let (first, second) = (given.next(), given.next());
        let parsed = match (first, second) {
            (None, _) => return None,
            (Some(_), Some(_)) => Err(Fault::new("repeated", "can only be given once")),
            (Some((_, value)), None) => refuse_nul(value).and_then(|()| parse(value)),
        };
        parsed.map_err(|fault| self.fault(name, fault)).ok()
    }

    /// The first value of a parameter as it was sent, without reading it.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, value)| given == name && !value.is_empty()).map(|(_, value)| &**value)
    }

    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.optional(name, |value| MAX_TEXT.check(value).map(|()| value.to_owned()))
    }

    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.optional(name, |value| {
            value.parse().map_err(|_| Fault::new("wrong_type", "must be true or false"))
        })
    }

    pub fn time(&mut self, name: &'static str) -> Option<Time> {
        self.optional(name, |value| {
            // An unescaped plus arrives as a space.
            let value = value.replace(' ', "+");
            Time::parse(&value).map_err(|error| Fault::new("malformed", error.to_string()))
        })
    }

    /// A parameter that can be repeated or have several values separated by commas.
    pub fn several<T>(&mut self, name: &'static str, parse: impl Fn(&str) -> Result<T, Fault>) -> Vec<T> {
        self.known.push(name);
        let given = self.pairs.iter().filter(|(given, _)| given == name);
        let words =
            given.flat_map(|(_, value)| value.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let (mut values, mut faults) = (Vec::new(), Vec::new());
        for word in words {
            match parse(word) {
                Ok(value) => values.push(value),
                Err(fault) => faults.push(fault),
            }
        }
        for fault in faults {
            self.fault(name, fault);
        }
        values
    }

    /// A parameter that can be repeated and whose values can contain commas: names of custom fields.
    pub fn repeated(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        let given = self.pairs.iter().filter(|(given, value)| given == name && !value.is_empty());
        let given: Vec<String> = given.map(|(_, value)| value.clone()).collect();
        given
            .into_iter()
            .filter(|value| MAX_KEY.check(value).map_err(|fault| self.fault(name, fault)).is_ok())
            .collect()
    }

    /// Parameters named `prefix` plus the key of a custom field. Returns each key with its value.
    pub fn keyed(&mut self, prefix: &'static str) -> Vec<(String, String)> {
        self.known_prefixes.push(prefix);
        let given = self.pairs.iter().filter(|(name, value)| name.starts_with(prefix) && !value.is_empty());
        let given: Vec<(String, String)> = given.cloned().collect();
        let mut keyed = Vec::with_capacity(given.len());
        for (name, value) in given {
            let key = &name[prefix.len()..];
            match MAX_KEY.check(key).and_then(|()| MAX_TEXT.check(&value)) {
                Ok(()) => keyed.push((key.to_owned(), value)),
                Err(fault) => self.fault(&name, fault),
            }
        }
        keyed
    }

    /// How many items a page may have: 50 by default, 200 at most.
    pub fn limit(&mut self) -> i64 {
        let wrong = |_| Fault::new("wrong_type", "must be a whole number of at least 1");
        let limit = self.optional("limit", |value| match value.parse::<u64>().map_err(wrong)? {
            0 => Err(Fault::new("out_of_range", "must be a whole number of at least 1")),
            limit => Ok(i64::try_from(limit).unwrap_or(MAX_LIMIT)),
        });
        limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT)
    }

    /// Where the previous page ended, from its `next_cursor`.
    pub fn cursor<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let invalid = || Fault::new("invalid_cursor", "is not a valid cursor for this list");
        self.optional("cursor", |text| read(text).ok_or_else(invalid))
    }

    /// What the path is about, unless that can't be read or the parameters are invalid.
    pub fn about<T>(self, subject: Result<T, Problem>) -> Result<T, Problem> {
        subject.and_then(|subject| self.finish().map(|()| subject))
    }

    /// Fails if there were any errors or unknown parameters.
    pub fn finish(mut self) -> Result<(), Problem> {
        let mut unknown: Vec<String> = Vec::new();
        for (name, _) in &self.pairs {
            let is_keyed = self.known_prefixes.iter().any(|prefix| name.starts_with(prefix));
            if !is_keyed && !self.known.contains(&name.as_str()) && !unknown.contains(name) {
                unknown.push(name.clone());
            }
        }
        for name in unknown {
            self.fault(&name, Fault::new("unknown_parameter", "is not a parameter of this endpoint"));
        }
        if self.errors.is_empty() { Ok(()) } else { Err(Invalid(self.errors).into()) }
    }
}

/// Writes a cursor from the list it belongs to and the place in that list.
pub fn write_cursor(list: u8, place: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(1 + place.len());
    bytes.push(list);
    bytes.extend_from_slice(place);
    base32().encode(&bytes)
}

/// Reads the place from a cursor of this list.
pub fn read_cursor_bytes(list: u8, text: &str) -> Option<Vec<u8>> {
    let mut bytes = base32().decode(text.as_bytes()).ok()?;
    (bytes.first() == Some(&list)).then(|| bytes.split_off(1))
}

/// Reads a place of a fixed size.
pub fn read_cursor<const N: usize>(list: u8, text: &str) -> Option<[u8; N]> {
    read_cursor_bytes(list, text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Uri;
    use rapport_domain::pipeline::Status;

    fn parameters(query: &str) -> Parameters {
        let uri: Uri = format!("/api/accounts/?{query}").parse().unwrap();
        let Query(pairs) = Query::try_from_uri(&uri).unwrap();
        Parameters { pairs, ..Parameters::default() }
    }

    fn faults(parameters: Parameters) -> Vec<(String, String)> {
        let shown = serde_json::to_value(parameters.finish().unwrap_err()).unwrap();
        let errors = shown["errors"].as_array().unwrap().iter();
        errors
            .map(|error| (error["pointer"].as_str().unwrap().into(), error["code"].as_str().unwrap().into()))
            .collect()
    }

    #[test]
    fn a_limit_is_clamped_and_must_be_a_number() {
        for (query, limit) in
            [("", 50), ("limit=1", 1), ("limit=200", 200), ("limit=201", 200), ("limit=99999999999", 200)]
        {
            let mut parameters = parameters(query);
            assert_eq!(parameters.limit(), limit, "{query}");
            assert!(parameters.finish().is_ok());
        }
        for query in ["limit=0", "limit=-1", "limit=ten", "limit=1.5", "limit=1&limit=2"] {
            let mut parameters = parameters(query);
            parameters.limit();
            assert_eq!(faults(parameters)[0].0, "limit", "{query}");
        }
    }

    #[test]
    fn every_fault_and_every_unknown_parameter_is_named() {
        let mut parameters =
            parameters("status=customer,nope&overdue=yes&q=a%00b&more=1&more=2&seen_after=never&cursor=x");
        parameters.several("status", Status::parse);
        parameters.boolean("overdue");
        parameters.text("q");
        parameters.time("seen_after");
        parameters.cursor(|text| read_cursor::<16>(b'h', text));
        let expected = [
            ("status", "unknown_status"),
            ("overdue", "wrong_type"),
            ("q", "nul_character"),
            ("seen_after", "malformed"),
            ("cursor", "invalid_cursor"),
            ("more", "unknown_parameter"),
        ];
        assert_eq!(faults(parameters), expected.map(|(name, code)| (name.to_owned(), code.to_owned())));
    }

    #[test]
    fn a_list_can_be_repeated_or_separated_by_commas() {
        let mut parameters = parameters("status=customer,in_trial&status=lost");
        let statuses = parameters.several("status", Status::parse);
        assert_eq!(statuses, [Status::Customer, Status::InTrial, Status::Lost]);
        assert!(parameters.finish().is_ok());
    }

    #[test]
    fn keys_of_custom_fields_are_part_of_the_name() {
        let mut parameters =
            parameters("field.a%2Cb=1&field.plan=x,y&field.plan=z&field.none=&has_field=a,b");
        let expected = [("a,b", "1"), ("plan", "x,y"), ("plan", "z")];
        assert_eq!(
            parameters.keyed("field."),
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        assert_eq!(parameters.repeated("has_field"), ["a,b"]);
        assert!(parameters.finish().is_ok());
    }

    #[test]
    fn faults_of_custom_fields_name_the_whole_parameter() {
        let mut parameters = parameters("field.=1&field.a=%00&has_field=%00&fields.a=1");
        assert!(parameters.keyed("field.").is_empty() && parameters.repeated("has_field").is_empty());
        let expected = [
            ("field.", "empty"),
            ("field.a", "nul_character"),
            ("has_field", "nul_character"),
            ("fields.a", "unknown_parameter"),
        ];
        assert_eq!(faults(parameters), expected.map(|(name, code)| (name.to_owned(), code.to_owned())));
    }

    #[test]
    fn a_cursor_is_only_valid_in_its_own_list() {
        let cursor = write_cursor(b'h', &[7; 16]);
        assert_eq!(read_cursor(b'h', &cursor), Some([7; 16]));
        assert_eq!(read_cursor::<16>(b'a', &cursor), None);
        assert_eq!(read_cursor::<8>(b'h', &cursor), None);
        assert_eq!(read_cursor::<16>(b'h', "%%%"), None);
    }
}
