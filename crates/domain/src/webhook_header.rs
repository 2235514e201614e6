//! Headers that a webhook adds to every delivery: which names it may use, what a value may be, and what is secret.
//!
//! The value of a secret header is stored encrypted, apart from the rest, and shown nowhere: not in the API, on pages, in
//! exports, in the audit log, nor in a response that repeats it.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::invalid::{Fault, Invalid, Members, as_array, as_bool, as_object, as_str, as_text};
use crate::text::Length;

pub const MAX_HEADERS: usize = 10;
pub const MAX_NAME: Length = Length::up_to(64);
pub const MAX_VALUE: Length = Length::up_to(2_048);
/// What stands in the place of a secret.
pub const MASK: &str = "****";
/// A beginning of a secret that is shorter than this may stand at the end of a cut text.
const MIN_BEGINNING: usize = 4;
/// A word of a secret that is shorter than this, such as `Basic`, isn't secret by itself.
const MIN_WORD: usize = 8;

/// Names that HTTP or this service owns. One that ends in a hyphen stands for all names that begin with it.
const RESERVED: [&str; 19] = [
    "accept-encoding",
    "connection",
    "content-",
    "date",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-",
    "sec-",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "webhook-",
    "x-service-",
];

/// A header as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    /// `None` if it is secret.
    pub value: Option<String>,
}

impl Header {
    /// As a line for people: `X-Environment: test`, or `Authorization: ****`.
    pub fn masked(&self) -> String {
        format!("{}: {}", self.name, self.value.as_deref().unwrap_or(MASK))
    }
}

/// A header of a request. A secret one without a value keeps the value it has.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenHeader {
    pub name: String,
    pub value: Option<String>,
    pub secret: bool,
}

impl fmt::Debug for GivenHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {MASK}", self.name)
    }
}

/// The values of the secret headers, by name in lower case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// All headers of a webhook after a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    pub shown: Vec<Header>,
    pub secrets: Secrets,
}

/// Parses the member `headers` of a request.
pub(crate) fn read_headers(members: &mut Members) -> Option<Vec<GivenHeader>> {
    let items = members.optional("headers", as_array)?;
    if items.len() > MAX_HEADERS {
        members.fault("headers", Fault::new("too_many", format!("must have at most {MAX_HEADERS} headers")));
        return None;
    }
    let mut headers: Vec<GivenHeader> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let base = format!("/headers/{place}");
        match as_object(item) {
            Ok(map) => match read_header(map, base, &headers) {
                Ok(header) => headers.push(header),
                Err(invalid) => members.absorb(invalid),
            },
            Err(Fault { code, detail }) => members.absorb(Invalid::one(base, code, detail)),
        }
    }
    Some(headers)
}

fn read_header(
    map: &Map<String, Value>,
    base: String,
    earlier: &[GivenHeader],
) -> Result<GivenHeader, Invalid> {
    let mut members = Members::under(map, base);
    let name = members.required("name", as_name);
    let secret = members.optional("secret", as_bool).unwrap_or(true);
    let value = if secret {
        members.optional("value", as_header_value)
    } else {
        members.required("value", as_header_value)
    };
    members.refuse_unknown();
    if let Some(name) = &name
        && earlier.iter().any(|header| header.name.eq_ignore_ascii_case(name))
    {
        members.fault("name", Fault::new("repeated", format!("{name} is already in the list")));
    }
    members.build(|| Some(GivenHeader { name: name?, value, secret }))
}

fn as_name(value: &Value) -> Result<String, Fault> {
    let name = as_text(value, MAX_NAME)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !name.bytes().all(is_allowed) {
        let detail = "must be the name of an HTTP header, such as X-Environment";
        return Err(Fault::new("bad_characters", detail));
    }
    let lower = name.to_ascii_lowercase();
    let owns = |reserved: &str| {
        if reserved.ends_with('-') { lower.starts_with(reserved) } else { lower == reserved }
    };
    if RESERVED.into_iter().any(owns) {
        return Err(Fault::new("reserved_name", format!("{name} is set by HTTP or by this service")));
    }
    Ok(name)
}

fn as_header_value(value: &Value) -> Result<String, Fault> {
    let text = as_str(value)?;
    MAX_VALUE.check(text)?;
    let is_visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if !is_visible || text.trim() != text {
        let detail = "must be printable ASCII characters, without spaces at its start or end";
        return Err(Fault::new("bad_characters", detail));
    }
    Ok(text.to_owned())
}

impl Headers {
    /// The headers of a request. Secret ones without a value keep theirs from `kept`.
    pub fn of(given: &[GivenHeader], kept: &Secrets) -> Result<Self, Invalid> {
        let (mut headers, mut missing) = (Self::default(), Vec::new());
        for (place, GivenHeader { name, value, secret }) in given.iter().enumerate() {
            let key = name.to_ascii_lowercase();
            if !secret {
                headers.shown.push(Header { name: name.clone(), value: value.clone() });
                continue;
            }
            if let Some(value) = value.as_ref().or_else(|| kept.0.get(&key)) {
                headers.secrets.0.insert(key, value.clone());
            } else {
                let detail = format!("is required for {name}: no value is stored for this host");
                missing.extend(Invalid::one(format!("/headers/{place}/value"), "required", detail).0);
            }
            headers.shown.push(Header { name: name.clone(), value: None });
        }
        if missing.is_empty() { Ok(headers) } else { Err(Invalid(missing)) }
    }

    /// The names and values to send; `None` if a secret is missing.
    pub fn into_pairs(self) -> Option<Vec<(String, String)>> {
        let Self { shown, mut secrets } = self;
        let complete = |Header { name, value }: Header| {
            let value = value.or_else(|| secrets.0.remove(&name.to_ascii_lowercase()))?;
            Some((name, value))
        };
        shown.into_iter().map(complete).collect()
    }

    /// The names of secret headers that were there already and got another value. One that can't be decrypted isn't in
    /// `before`.
    pub fn replaced(&self, earlier: &[Header], before: &Secrets) -> Vec<&str> {
        let was_secret = |name: &str| {
            earlier.iter().any(|header| header.value.is_none() && header.name.eq_ignore_ascii_case(name))
        };
        let secrets = self.secrets.0.iter().filter(|(name, value)| before.0.get(*name) != Some(*value));
        secrets.map(|(name, _)| name.as_str()).filter(|name| was_secret(name)).collect()
    }
}

impl Secrets {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text to encrypt, if there is any secret.
    pub fn to_text(&self) -> Option<String> {
        (!self.is_empty()).then(|| json!(self.0).to_string())
    }

    /// From text that `to_text` produced.
    pub fn from_text(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }
}

/// The stored form of what may be shown: empty without headers, so that reading it costs nothing.
pub fn to_stored(headers: &[Header]) -> String {
    if headers.is_empty() {
        return String::new();
    }
    let pairs: Vec<Value> = headers.iter().map(|header| json!([header.name, header.value])).collect();
    Value::Array(pairs).to_string()
}

/// From text that `to_stored` produced.
pub fn from_stored(text: &str) -> Vec<Header> {
    if text.is_empty() {
        return Vec::new();
    }
    let pairs: Vec<(String, Option<String>)> = serde_json::from_str(text).unwrap_or_default();
    pairs.into_iter().map(|(name, value)| Header { name, value }).collect()
}

/// Masks secrets in a response that repeats them. If the response was cut, the beginning of one may stand at its end.
pub fn mask<'a>(response: &mut Vec<u8>, was_cut: bool, secrets: impl IntoIterator<Item = &'a str>) {
    for secret in secrets {
        let words = secret.split(' ').filter(|word| word.len() >= MIN_WORD && word.len() < secret.len());
        for hidden in std::iter::once(secret).chain(words) {
            replace_all(response, hidden.as_bytes());
            let mut beginnings = (MIN_BEGINNING..hidden.len()).rev().filter(|_| was_cut);
            if let Some(length) = beginnings.find(|length| response.ends_with(&hidden.as_bytes()[..*length]))
            {
                response.truncate(response.len() - length);
                response.extend_from_slice(MASK.as_bytes());
            }
        }
    }
}

fn replace_all(text: &mut Vec<u8>, hidden: &[u8]) {
    let mut at = 0;
    while let Some(found) = text[at..].windows(hidden.len()).position(|part| part == hidden) {
        text.splice(at + found..at + found + hidden.len(), MASK.bytes());
        at += found + MASK.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(headers: &Value) -> Result<Vec<GivenHeader>, Vec<(String, &'static str)>> {
        let body = json!({ "headers": headers });
        let mut members = Members::of(body.as_object().unwrap());
        let given = read_headers(&mut members);
        let faults =
            |invalid: Invalid| invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect();
        members.build(|| given).map_err(faults)
    }

    fn one(name: &str, value: &str) -> Result<(), &'static str> {
        parse(&json!([{ "name": name, "value": value }])).map(drop).map_err(|faults| faults[0].1)
    }

    #[test]
    fn names_that_http_or_we_own_are_refused() {
        let reserved = Err("reserved_name");
        let table = [
            ("Authorization", Ok(())),
            ("X-Api-Key", Ok(())),
            ("Cookie", Ok(())),
            ("X-Content-Id", Ok(())),
            ("Te-X", Ok(())),
            ("Host", reserved),
            ("content-type", reserved),
            ("Content-Length", reserved),
            ("CONTENT-ENCODING", reserved),
            ("X-Service-Signature", reserved),
            ("x-service-anything", reserved),
            ("webhook-id", reserved),
            ("Webhook-Signature", reserved),
            ("Connection", reserved),
            ("Keep-Alive", reserved),
            ("Transfer-Encoding", reserved),
            ("TE", reserved),
            ("Trailer", reserved),
            ("Upgrade", reserved),
            ("Expect", reserved),
            ("Proxy-Authorization", reserved),
            ("User-Agent", reserved),
            ("Accept-Encoding", reserved),
            ("", Err("empty")),
            ("two words", Err("bad_characters")),
            ("X:Y", Err("bad_characters")),
            ("X\r\nY", Err("bad_characters")),
            ("Größe", Err("bad_characters")),
        ];
        for (name, expected) in table {
            assert_eq!(one(name, "v"), expected, "{name:?}");
        }
        assert_eq!(one(&"x".repeat(65), "v"), Err("too_long"));
    }

    #[test]
    fn values_are_one_line_of_printable_ascii() {
        let table = [
            ("Bearer abc def", Ok(())),
            ("~!\"#", Ok(())),
            ("", Err("empty")),
            (" v", Err("bad_characters")),
            ("v ", Err("bad_characters")),
            ("a\r\nX-Injected: b", Err("bad_characters")),
            ("a\tb", Err("bad_characters")),
            ("ä", Err("bad_characters")),
            ("a\0", Err("nul_character")),
        ];
        for (value, expected) in table {
            assert_eq!(one("X-A", value), expected, "{value:?}");
        }
        assert_eq!(one("X-A", &"v".repeat(2_048)), Ok(()));
        assert_eq!(one("X-A", &"v".repeat(2_049)), Err("too_long"));
    }

    #[test]
    fn every_fault_of_a_list_has_its_place() {
        let faults = parse(&json!([
            {"name": "X-A", "value": "1", "secret": false}, {"name": "x-a", "value": "2"}, 7, {"secret": "yes"},
            {"name": "X-B", "secret": false}, {"name": "X-C", "value": "1", "more": 1},
        ]));
        let expected = [
            ("/headers/1/name", "repeated"),
            ("/headers/2", "wrong_type"),
            ("/headers/3/name", "required"),
            ("/headers/3/secret", "wrong_type"),
            ("/headers/4/value", "required"),
            ("/headers/5/more", "unknown_member"),
        ];
        assert_eq!(faults.unwrap_err(), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
        let many: Vec<Value> =
            (0..=MAX_HEADERS).map(|n| json!({"name": format!("X-{n}"), "value": "1"})).collect();
        assert_eq!(parse(&json!(many)).unwrap_err(), [("/headers".to_owned(), "too_many")]);
        assert_eq!(parse(&json!([])), Ok(Vec::new()));
    }

    #[test]
    fn a_secret_keeps_its_value_until_another_is_given() {
        let given = |value: Value| parse(&value).unwrap();
        let first = given(
            json!([{"name": "Authorization", "value": "Bearer one"}, {"name": "X-Env", "value": "p", "secret": false}]),
        );
        let first = Headers::of(&first, &Secrets::default()).unwrap();
        assert_eq!(first.shown[0], Header { name: "Authorization".to_owned(), value: None });
        assert_eq!(first.shown[1].value.as_deref(), Some("p"));
        let stored = to_stored(&first.shown);
        assert!(!stored.contains("one") && !format!("{first:?}").contains("Bearer"), "{stored}");
        assert_eq!(from_stored(&stored), first.shown);
        let text = first.secrets.to_text().unwrap();
        assert_eq!(Secrets::from_text(&text), first.secrets);

        let kept =
            Headers::of(&given(json!([{"name": "authorization", "secret": true}])), &first.secrets).unwrap();
        assert_eq!(kept.replaced(&first.shown, &first.secrets), [""; 0]);
        assert_eq!(kept.into_pairs().unwrap(), [("authorization".to_owned(), "Bearer one".to_owned())]);
        let new = given(json!([{"name": "Authorization", "value": "Bearer two"}]));
        let new = Headers::of(&new, &first.secrets).unwrap();
        assert_eq!(new.replaced(&first.shown, &first.secrets), ["authorization"]);
        assert_eq!(
            new.replaced(&first.shown, &Secrets::default()),
            ["authorization"],
            "what couldn't be read"
        );
        assert_eq!(new.replaced(&[], &Secrets::default()), [""; 0], "a new one replaces nothing");
        let missing = Headers::of(&given(json!([{"name": "X-Other"}])), &first.secrets).unwrap_err();
        assert_eq!((missing.0[0].pointer.as_str(), missing.0[0].code), ("/headers/0/value", "required"));
        let lost = Headers { secrets: Secrets::default(), ..first };
        assert_eq!(lost.into_pairs(), None);
        assert_eq!((to_stored(&[]), Secrets::default().to_text()), (String::new(), None));
    }

    #[test]
    fn a_response_that_repeats_a_secret_is_masked() {
        let table = [
            ("got Bearer topsecret1 twice: Bearer topsecret1.", false, "got **** twice: ****."),
            (r#"{"token":"topsecret1"}"#, false, r#"{"token":"****"}"#),
            ("Bearer of news", false, "Bearer of news"),
            ("cut: Bearer topsec", true, "cut: ****"),
            ("not cut: Bearer topsec", false, "not cut: Bearer topsec"),
            ("", true, ""),
        ];
        for (response, was_cut, expected) in table {
            let mut bytes = response.as_bytes().to_vec();
            mask(&mut bytes, was_cut, ["Bearer topsecret1"]);
            assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{response}");
        }
    }
}
