//! JSON over HTTP: bodies are read strictly and within limits, responses are written straight to bytes.
//!
//! Strict means UTF-8 without a byte order mark, one object at the top level, no duplicate members and at most
//! 64 levels of nesting. Numbers keep their literal text. The domain interprets the members.

use std::cell::RefCell;
use std::fmt;
use std::io::Read;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use bytes::{Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use rapport_domain::invalid::Invalid;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::{Map, Number, Value};

use crate::edge::problem::Problem;

/// The largest allowed body, after decompression.
pub const MAX_BODY_BYTES: usize = 1 << 20;
pub const MAX_DEPTH: usize = 64;
/// How much of a refused body is read and discarded, so that its sender gets to read the response.
const MAX_DRAIN_BYTES: usize = 32 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of a member's name an error quotes.
const SHOWN_NAME_CHARS: usize = 64;
/// Names that serde_json uses to pass numbers and raw text through serde's data model. An object with such
/// a member would read back as something else, so it is rejected.
const RESERVED: [&str; 2] = [NUMBER, "$serde_json::private::RawValue"];
const NUMBER: &str = "$serde_json::private::Number";

/// A response with a JSON body.
pub fn respond<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> axum::response::Response {
    render(status, value).into_response()
}

/// The same, before it is sent.
pub fn render<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Rendered {
    let mut body = Vec::with_capacity(1024);
    match serde_json::to_writer(&mut body, value) {
        Ok(()) => Rendered { status, body, is_secret: false },
        Err(error) => {
            tracing::error!(%error, "failed to write a response");
            Rendered::from(&Problem::internal(error.to_string()))
        }
    }
}

/// A response whose body can still be read, to keep it or to compute its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub status: StatusCode,
    pub body: Vec<u8>,
    /// Whether the body contains a secret that is shown only here.
    pub is_secret: bool,
}

impl Rendered {
    pub const NO_CONTENT: Self = Self { status: StatusCode::NO_CONTENT, body: Vec::new(), is_secret: false };

    #[must_use]
    pub fn with_secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

impl From<&Problem> for Rendered {
    fn from(problem: &Problem) -> Self {
        let body = serde_json::to_vec(problem).unwrap_or_default();
        Self { status: problem.status(), body, is_secret: false }
    }
}

impl IntoResponse for Rendered {
    fn into_response(self) -> axum::response::Response {
        let is_empty = self.body.is_empty();
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        if !is_empty {
            let is_problem = self.status.is_client_error() || self.status.is_server_error();
            let media_type = if is_problem { "application/problem+json" } else { "application/json" };
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        response
    }
}

/// The object a request sent.
#[derive(Debug, Clone, Default)]
pub struct Object {
    pub members: Map<String, Value>,
    /// Its size, decompressed.
    pub bytes: usize,
}

/// Whether a request must have a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Required,
    /// No body means an empty object.
    Optional,
}

/// Reads a request's body.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    presence: Presence,
    timeout: Duration,
) -> Result<Object, Problem> {
    object(read_bytes(headers, body, presence, timeout).await?.as_deref())
}

/// The bytes of a request's body, decompressed. `None` if there is no body and none is required.
pub async fn read_bytes(
    headers: &HeaderMap,
    body: Body,
    presence: Presence,
    timeout: Duration,
) -> Result<Option<Bytes>, Problem> {
    let raw = receive(headers, body, MAX_BODY_BYTES, timeout).await?;
    if raw.is_empty() && presence == Presence::Optional {
        return Ok(None);
    }
    require_json(headers)?;
    decompress(headers, raw, MAX_BODY_BYTES).map(Some)
}

/// The object in the bytes of a body.
pub fn object(decoded: Option<&[u8]>) -> Result<Object, Problem> {
    let Some(decoded) = decoded else { return Ok(Object::default()) };
    Ok(Object { members: parse(decoded)?, bytes: decoded.len() })
}

/// The bytes of a body of any kind, as they were sent.
pub async fn receive(
    headers: &HeaderMap,
    body: Body,
    max_bytes: usize,
    timeout: Duration,
) -> Result<Bytes, Problem> {
    let collected = tokio::time::timeout(timeout, collect(headers, body, max_bytes)).await;
    collected.unwrap_or_else(|_| Err(Problem::body_too_slow()))
}

/// Decompresses a body according to its Content-Encoding.
pub fn decompress(headers: &HeaderMap, raw: Bytes, max_bytes: usize) -> Result<Bytes, Problem> {
    match encoding(headers)? {
        Encoding::Identity => Ok(raw),
        Encoding::Gzip => Ok(Bytes::from(gunzip(&raw, max_bytes)?)),
    }
}

/// Reads and discards a body.
pub async fn drain(mut body: Body) {
    let reading = async {
        let mut drained = 0;
        while let Some(Ok(frame)) = body.frame().await {
            drained += frame.data_ref().map_or(0, Bytes::len);
            if drained > MAX_DRAIN_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
}

async fn collect(headers: &HeaderMap, mut body: Body, max_bytes: usize) -> Result<Bytes, Problem> {
    let announced = body.size_hint().lower();
    if usize::try_from(announced).is_ok_and(|announced| announced > max_bytes) {
        // A client that waits for "100 Continue" has not sent anything yet.
        if !headers.contains_key(header::EXPECT) {
            drain(body).await;
        }
        return Err(Problem::body_too_large(max_bytes));
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::of_body(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > max_bytes {
            drain(body).await;
            return Err(Problem::body_too_large(max_bytes));
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = sent.split(';').next().unwrap_or("").trim();
    let is_json = essence.eq_ignore_ascii_case("application/json")
        || essence.len() > 5
            && essence.is_char_boundary(essence.len() - 5)
            && essence[essence.len() - 5..].eq_ignore_ascii_case("+json");
    if is_json {
        return Ok(());
    }
    Err(Problem::unsupported("unsupported_media_type", "send the body as Content-Type: application/json"))
}

enum Encoding {
    Identity,
    Gzip,
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, Problem> {
    let mut sent = headers.get_all(header::CONTENT_ENCODING).iter();
    let first = sent.next().map_or(Ok("identity"), HeaderValue::to_str).map_or("", str::trim);
    if sent.next().is_none() {
        if first.eq_ignore_ascii_case("gzip") || first.eq_ignore_ascii_case("x-gzip") {
            return Ok(Encoding::Gzip);
        }
        if first.eq_ignore_ascii_case("identity") {
            return Ok(Encoding::Identity);
        }
    }
    let problem = Problem::unsupported(
        "unsupported_encoding",
        "send the body uncompressed or with Content-Encoding: gzip",
    );
    Err(problem.with_header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip")))
}

/// Decompresses up to the limit and no further, however large the body would become.
fn gunzip(raw: &[u8], max_bytes: usize) -> Result<Vec<u8>, Problem> {
    let mut decoded = Vec::with_capacity(raw.len().saturating_mul(4).min(max_bytes));
    let mut reader = MultiGzDecoder::new(raw).take(max_bytes as u64 + 1);
    if reader.read_to_end(&mut decoded).is_err() {
        return Err(Problem::bad_request("broken_gzip", "the gzip data is damaged or incomplete"));
    }
    if decoded.len() > max_bytes {
        return Err(Problem::body_too_large(max_bytes));
    }
    Ok(decoded)
}

/// Parses one JSON object, strictly.
pub fn parse(bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    let text =
        str::from_utf8(bytes).map_err(|_| Problem::bad_request("not_json", "the body is not UTF-8"))?;
    let refusal = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = Strict { refusal: &refusal, depth: 0 }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    match (refusal.into_inner(), parsed) {
        (Some(refusal), _) => Err(refusal.into()),
        (None, Ok(Value::Object(members))) => Ok(members),
        (None, Ok(_)) => Err(Problem::bad_request("not_an_object", "the body must be a single JSON object")),
        (None, Err(error)) => Err(Problem::bad_request("not_json", format!("the body is not JSON: {error}"))),
    }
}

/// Why and where valid JSON was refused. The path is collected from the inside out.
struct Refusal {
    reason: Reason,
    path: Vec<String>,
}

enum Reason {
    Duplicate,
    TooDeep,
    Reserved,
}

impl From<Refusal> for Problem {
    fn from(Refusal { reason, path }: Refusal) -> Self {
        let pointer = path.iter().rev().flat_map(|segment| ["/", segment]).collect::<String>();
        match reason {
            Reason::Duplicate => {
                Self::bad_request("duplicate_member", format!("the member {pointer} appears more than once"))
            }
            Reason::TooDeep => {
                Self::bad_request("too_deep", format!("the body is nested more than {MAX_DEPTH} levels deep"))
            }
            Reason::Reserved => Invalid::one(pointer, "reserved_name", "is a reserved member name").into(),
        }
    }
}

/// Reads any JSON value, except for the cases in `Reason`.
#[derive(Clone, Copy)]
struct Strict<'r> {
    refusal: &'r RefCell<Option<Refusal>>,
    /// How many arrays and objects enclose the value.
    depth: usize,
}

impl Strict<'_> {
    fn refuse<E: serde::de::Error>(self, reason: Reason, segment: Option<&str>) -> E {
        let path = segment.map(shown).into_iter().collect();
        *self.refusal.borrow_mut() = Some(Refusal { reason, path });
        E::custom("refused")
    }

    /// Adds a segment to the path of a refusal on the way out.
    fn within<E>(self, error: E, segment: impl FnOnce() -> String) -> E {
        if let Some(refusal) = &mut *self.refusal.borrow_mut() {
            refusal.path.push(segment());
        }
        error
    }

    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.refuse(Reason::TooDeep, None));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

fn shown(name: &str) -> String {
    let clipped: String = name.chars().take(SHOWN_NAME_CHARS).collect();
    clipped.replace('~', "~0").replace('/', "~1")
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) =
            seq.next_element_seed(inner).map_err(|error| self.within(error, || items.len().to_string()))?
        {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut next = map.next_key_seed(NameSeed)?;
        if let Some(Name::Reserved(NUMBER)) = next {
            // serde_json presents a number that is not a plain integer as an object with this one member and an
            // owned string. The strings of a real object in the body are never owned.
            return match map.next_value_seed(NumberText) {
                Ok(text) => text.parse::<Number>().map(Value::Number).map_err(A::Error::custom),
                Err(_) => Err(self.refuse(Reason::Reserved, Some(NUMBER))),
            };
        }
        let inner = self.deeper()?;
        let mut members = Map::new();
        while let Some(name) = next {
            let name = match name {
                Name::Member(name) => name,
                Name::Reserved(name) => return Err(self.refuse(Reason::Reserved, Some(name))),
            };
            if members.contains_key(&name) {
                return Err(self.refuse(Reason::Duplicate, Some(&name)));
            }
            let value = map.next_value_seed(inner).map_err(|error| self.within(error, || shown(&name)))?;
            members.insert(name, value);
            next = map.next_key_seed(NameSeed)?;
        }
        Ok(Value::Object(members))
    }
}

enum Name {
    Member(String),
    Reserved(&'static str),
}

/// Reads a member's name.
struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        let reserved = name.starts_with('$').then(|| RESERVED.into_iter().find(|reserved| *reserved == name));
        Ok(reserved.flatten().map_or_else(|| Name::Member(name.to_owned()), Name::Reserved))
    }
}

/// Reads the text of a number. An object in the body that imitates one is an error.
struct NumberText;

impl<'de> DeserializeSeed<'de> for NumberText {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for NumberText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_string<E>(self, text: String) -> Result<String, E> {
        Ok(text)
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<String, E> {
        Err(E::custom("an object that imitates a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;
    use std::io::Write;

    fn refused(text: &str) -> (u16, &'static str) {
        let problem = parse(text.as_bytes()).expect_err(text);
        (problem.status().as_u16(), problem.code())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    async fn read_with(
        headers: &[(&'static str, &'static str)],
        body: Vec<u8>,
    ) -> Result<Object, (u16, &'static str)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let read = read(&map, Body::from(body), Presence::Required, Duration::from_secs(5)).await;
        read.map_err(|problem| (problem.status().as_u16(), problem.code()))
    }

    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn plain_objects_are_read_as_by_serde_json() {
        for text in [
            "{}",
            r#" {"a": 1, "b": [true, null, {"c": "d"}], "e": {"f": {}}, "": -0.5e-3} "#,
            r#"{"text": "\u00e4\n\ud83d\ude00", "$": 1, "$serde": {"x": []}}"#,
        ] {
            let plain: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Value::Object(parse(text.as_bytes()).unwrap()), plain);
        }
    }

    #[test]
    fn numbers_keep_their_literal_text() {
        for literal in ["0", "-1", "1200.50", "123456789012345678901234567890.10", "1e+400", "-0.0", "1E+5"] {
            let members = parse(format!(r#"{{"n": {literal}}}"#).as_bytes()).unwrap();
            assert!(members["n"].is_number());
            assert_eq!(members["n"].to_string().to_lowercase(), literal.to_lowercase());
        }
    }

    #[test]
    fn anything_but_a_single_object_is_refused() {
        let table = [
            ("", "not_json"),
            ("{", "not_json"),
            ("{} x", "not_json"),
            ("{}{}", "not_json"),
            ("{'a': 1}", "not_json"),
            (r#"{"a": 1,}"#, "not_json"),
            (r#"{"a": NaN}"#, "not_json"),
            (r#"{"a": 01}"#, "not_json"),
            (r#"{"a": "\ud800"}"#, "not_json"),
            ("\u{feff}{}", "not_json"),
            ("[]", "not_an_object"),
            ("null", "not_an_object"),
            ("1", "not_an_object"),
            (r#""text""#, "not_an_object"),
        ];
        for (text, code) in table {
            assert_eq!(refused(text), (400, code), "{text}");
        }
        assert_eq!(parse(b"{\"a\": \"\xff\"}").unwrap_err().code(), "not_json");
    }

    #[test]
    fn a_member_may_appear_once() {
        assert_eq!(refused(r#"{"a": 1, "a": 1}"#), (400, "duplicate_member"));
        assert_eq!(refused(r#"{"x": [{"a": 1, "\u0061": 2}]}"#), (400, "duplicate_member"));
        let shown = serde_json::to_value(parse(br#"{"x": [0, {"a/b": 1, "a/b": 2}]}"#).unwrap_err()).unwrap();
        assert_eq!(shown["detail"], json!("the member /x/1/a~1b appears more than once"));
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested =
            |levels: usize| format!(r#"{{"a": {}1{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(refused(&nested(MAX_DEPTH + 1)), (400, "too_deep"));
        assert_eq!(refused(&"{\"a\":".repeat(100_000)), (400, "too_deep"));
        assert_eq!(refused(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), (400, "too_deep"));
    }

    #[test]
    fn an_object_cannot_imitate_a_number_or_raw_text() {
        for value in ["\"12\"", "\"\\u0031\"", "12", "{}", "[1]", "null", "\"x\""] {
            for name in RESERVED {
                assert_eq!(
                    refused(&format!(r#"{{"a": {{"{name}": {value}}}}}"#)),
                    (422, "invalid"),
                    "{name} {value}"
                );
                assert_eq!(refused(&format!(r#"{{"a": {{"b": 1, "{name}": {value}}}}}"#)), (422, "invalid"));
                assert_eq!(refused(&format!(r#"{{"{name}": {value}}}"#)), (422, "invalid"));
            }
        }
        let problem = parse(br#"{"a": [{"$serde_json::private::Number": "1"}]}"#).unwrap_err();
        let shown = serde_json::to_value(problem).unwrap();
        assert_eq!(shown["errors"][0]["pointer"], json!("/a/0/$serde_json::private::Number"));
    }

    #[tokio::test]
    async fn the_content_type_must_be_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.acme+json;v=1"] {
            assert!(read_with(&[("content-type", good)], b"{}".to_vec()).await.is_ok(), "{good}");
        }
        for bad in ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonp", "json"] {
            let found = read_with(&[("content-type", bad)], b"{}".to_vec()).await.unwrap_err();
            assert_eq!(found, (415, "unsupported_media_type"), "{bad}");
        }
        assert_eq!(read_with(&[], b"{}".to_vec()).await.unwrap_err(), (415, "unsupported_media_type"));
    }

    #[tokio::test]
    async fn gzip_is_read_and_broken_gzip_refused() {
        let sent = gzip(br#"{"a": 1}"#);
        for name in ["gzip", "GZIP", "x-gzip"] {
            let object = read_with(&[JSON, ("content-encoding", name)], sent.clone()).await.unwrap();
            assert_eq!((object.members["a"].clone(), object.bytes), (json!(1), 8));
        }
        let mut damaged = sent.clone();
        damaged[12] ^= 0xff;
        let mut trailing = sent.clone();
        trailing.extend_from_slice(b"garbage");
        for broken in
            [sent[..sent.len() - 1].to_vec(), sent[..15].to_vec(), b"{}".to_vec(), damaged, trailing, vec![]]
        {
            let found = read_with(&[JSON, ("content-encoding", "gzip")], broken).await.unwrap_err();
            assert_eq!(found, (400, "broken_gzip"));
        }
        for other in ["br", "deflate", "gzip, gzip", ""] {
            let found = read_with(&[JSON, ("content-encoding", other)], sent.clone()).await.unwrap_err();
            assert_eq!(found, (415, "unsupported_encoding"), "{other}");
        }
    }

    #[tokio::test]
    async fn a_body_has_a_limit_before_and_after_decompression() {
        let of_size = |size: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(size - 8)).into_bytes();
        assert!(read_with(&[JSON], of_size(MAX_BODY_BYTES)).await.is_ok());
        assert_eq!(
            read_with(&[JSON], of_size(MAX_BODY_BYTES + 1)).await.unwrap_err(),
            (413, "body_too_large")
        );
        let gzipped = |size: usize| gzip(&of_size(size));
        let headers = [JSON, ("content-encoding", "gzip")];
        assert!(read_with(&headers, gzipped(MAX_BODY_BYTES)).await.is_ok());
        assert_eq!(
            read_with(&headers, gzipped(MAX_BODY_BYTES + 1)).await.unwrap_err(),
            (413, "body_too_large")
        );
        let bomb = gzip(&vec![b' '; 32 << 20]);
        assert_eq!(read_with(&headers, bomb).await.unwrap_err(), (413, "body_too_large"));
    }

    #[tokio::test]
    async fn a_missing_body_is_an_empty_object_only_if_it_is_optional() {
        let none = HeaderMap::new();
        let optional = read(&none, Body::empty(), Presence::Optional, Duration::from_secs(5)).await;
        assert!(optional.unwrap().members.is_empty());
        assert_eq!(read_with(&[JSON], vec![]).await.unwrap_err(), (400, "not_json"));
    }

    #[tokio::test]
    async fn a_body_that_never_ends_times_out() {
        struct Endless;
        impl hyper::body::Body for Endless {
            type Data = Bytes;
            type Error = std::convert::Infallible;

            fn poll_frame(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
                std::task::Poll::Pending
            }
        }
        let headers = HeaderMap::new();
        let found = read(&headers, Body::new(Endless), Presence::Required, Duration::ZERO).await;
        assert_eq!(found.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
    }
}
