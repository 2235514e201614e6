//! The fields that a form sends.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use rapport_app::Error;
use rapport_domain::file_format::Format;
use rapport_domain::id::FormId;
use rapport_domain::invalid::Invalid;
use serde_json::{Map, Value};

use crate::edge::slow_body::is_too_slow;
use crate::pages::Pages;
use crate::pages::kit::refusal::Refusal;

/// The hidden field with the form id, which is different each time the form is shown.
pub const FORM: &str = "form";
pub const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";
/// Room for the longest message in form encoding.
pub const MAX_BYTES: usize = 4 << 20;

/// The fields of a form, in the order they were sent.
#[derive(Debug, Clone, Default)]
pub struct Form(Arc<Vec<(String, String)>>);

impl Form {
    pub fn parse(bytes: &[u8]) -> Self {
        let pairs = url::form_urlencoded::parse(bytes);
        // Browsers send line breaks as CR LF.
        let pairs = pairs.map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")));
        Self(Arc::new(pairs.collect()))
    }

    /// Fields that were not sent as `MEDIA_TYPE`.
    pub fn of(fields: &[(String, String)]) -> Self {
        Self(Arc::new(fields.to_vec()))
    }

    /// The fields of a query string.
    pub fn of_query(query: Option<&str>) -> Self {
        Self::parse(query.unwrap_or("").as_bytes())
    }

    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The fields as a query string.
    pub fn to_query(&self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.fields()).finish()
    }

    /// The first value of a field as typed, or an empty text.
    pub fn text(&self, name: &str) -> &str {
        self.fields().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    /// The trimmed value of a field, unless it is empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name).trim()).filter(|text| !text.is_empty())
    }

    /// The file type to export.
    pub fn format(&self, default: Format) -> Result<Format, Invalid> {
        let given = self.given("format").map_or(Ok(default), Format::parse);
        given.map_err(|fault| Invalid::one("/format", fault.code, fault.detail))
    }

    /// Whether a box is ticked.
    pub fn is_ticked(&self, name: &str) -> bool {
        self.fields().any(|(key, _)| key == name)
    }

    /// Every value of a field, such as the ticked boxes of one name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields().filter(move |(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The form id.
    pub fn id(&self) -> Result<FormId, Error> {
        let missing =
            || Invalid::one("/form", "required", "the form is incomplete; reload the page and try again");
        self.text(FORM).parse().map_err(|_| missing().into())
    }

    /// The fields as members of a JSON object, so that the parsers of the API apply, with the same rules and messages.
    /// Empty fields are left out, or are `null` if they may be cleared.
    pub fn members(&self, fields: &[(&'static str, As)]) -> Map<String, Value> {
        let member = |(name, how): &(&'static str, As)| {
            let value = match how {
                As::Text => self.given(name).map(Value::from),
                As::Verbatim => Some(self.text(name)).filter(|text| !text.is_empty()).map(Value::from),
                As::Clearable => Some(self.given(name).map_or(Value::Null, Value::from)),
                As::Number => self.given(name).map(number),
                As::ClearableNumber => Some(self.given(name).map_or(Value::Null, number)),
                As::Ticked => Some(Value::from(self.is_ticked(name))),
                As::Ticks => Some(self.all(name).map(Value::from).collect()),
            };
            value.map(|value| ((*name).to_owned(), value))
        };
        fields.iter().filter_map(member).collect()
    }
}

/// How a field becomes a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum As {
    Text,
    /// Not trimmed, for passwords.
    Verbatim,
    /// An empty field removes the value.
    Clearable,
    Number,
    ClearableNumber,
    /// A single box.
    Ticked,
    /// Several boxes with one name.
    Ticks,
}

/// The typed number, else the text, which the parser then refuses.
fn number(text: &str) -> Value {
    text.parse::<serde_json::Number>().map_or_else(|_| Value::from(text), Value::Number)
}

impl FromRequest<Pages> for Form {
    type Rejection = Refusal;

    async fn from_request(request: Request, pages: &Pages) -> Result<Self, Refusal> {
        if let Some(form) = request.extensions().get::<Self>() {
            return Ok(form.clone());
        }
        let bytes = read_body(request, pages).await?;
        Ok(Self::parse(&bytes))
    }
}

/// Reads the body of a request, limited in size and time.
pub async fn read_body(request: Request, pages: &Pages) -> Result<Bytes, Refusal> {
    let body = axum::body::to_bytes(request.into_body(), MAX_BYTES);
    match tokio::time::timeout(pages.0.body_timeout, body).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if !is_too_slow(&error) => Err(Refusal::too_large()),
        Ok(Err(_)) | Err(_) => Err(Refusal::too_slow()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_become_the_members_that_the_api_takes() {
        let form = Form::parse(b"name=+Ana+&value=12.5&days=x&note=&stage=a&stage=b&on=on&line=a%0D%0Ab");
        let members = form.members(&[
            ("name", As::Text),
            ("value", As::Number),
            ("days", As::Number),
            ("note", As::Clearable),
            ("missing", As::Text),
            ("stage", As::Ticks),
            ("on", As::Ticked),
            ("off", As::Ticked),
            ("line", As::Verbatim),
        ]);
        let expected = json!({
            "name": "Ana", "value": 12.5, "days": "x", "note": null, "stage": ["a", "b"], "on": true, "off": false,
            "line": "a\nb",
        });
        assert_eq!(Value::Object(members), expected);
    }
}
