//! The OpenAPI document as a page. It is rendered once and needs no scripts and no other hosts.

use std::borrow::Cow;

use askama::Template;
use axum::http::{HeaderValue, header};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use serde_json::{Map, Value};
use utoipa::openapi::OpenApi;

use crate::api::{Api, Later, later, openapi};
use crate::edge::codes::{self, FieldCode, ProblemCode};
use crate::shared::catalogue::{self, Entry};
use crate::shared::documentation::Documentation;
use crate::shared::prose::{Line, line, prose};

pub const PATH: &str = "/api/docs/";
pub const STYLE_PATH: &str = "/api/docs/style.css";
const STYLE: &str = concat!(
    include_str!("../../assets/css/tokens.css"),
    include_str!("../../assets/css/font.css"),
    include_str!("../../assets/css/docs.css"),
);
/// How deep an example follows references, since schemas may refer to each other.
const EXAMPLE_DEPTH: usize = 6;

pub fn routes(document: Later<OpenApi>) -> Router<Api> {
    let page = later(move || {
        let document = serde_json::to_value(&**document).expect("the document is plain data");
        let page = rendered(&document);
        let documentation = Documentation { content: content(&page).into(), stylesheet: STYLE_PATH };
        (Extension(documentation), Bytes::from(page))
    });
    let policy = "default-src 'none'; style-src 'self'; font-src 'self'; frame-ancestors 'none'; \
                  base-uri 'none'; form-action 'none'";
    let headers = |media_type| {
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        ]
    };
    let page_headers = headers("text/html; charset=utf-8");
    let style_headers = headers("text/css; charset=utf-8");
    let show = async move || {
        let (documentation, page) = &**page;
        (page_headers.clone(), documentation.clone(), page.clone())
    };
    Router::new().route(PATH, get(show)).route(STYLE_PATH, get(async move || (style_headers.clone(), STYLE)))
}

/// The part of the page that isn't its frame.
fn content(page: &str) -> &str {
    let (_, content) = page.split_once(r#"<main class="docs">"#).unwrap_or_default();
    content.rsplit_once("</main>").map_or("", |(content, _)| content)
}

fn rendered(document: &Value) -> String {
    Document(document).page().render().expect("only writing could fail, and this writes to memory")
}

#[derive(Template)]
#[template(path = "api/docs.html")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    /// Paragraphs, like every description but those in tables.
    description: Vec<Line<'a>>,
    groups: Vec<Group<'a>>,
    events: &'static [Entry],
    problems: Vec<Code>,
    fields: Vec<Code>,
    schemas: Vec<Schema<'a>>,
}

/// An error code. Its id is the anchor that problems lead to.
struct Code {
    id: String,
    name: &'static str,
    /// Empty for the code of a field.
    status: &'static str,
    meaning: Line<'static>,
    remedy: Line<'static>,
}

impl Code {
    fn of_problem(&ProblemCode { code, status, meaning, remedy }: &ProblemCode) -> Self {
        Self { id: format!("error-{code}"), name: code, status, meaning: line(meaning), remedy: line(remedy) }
    }

    fn of_field(&FieldCode { code, meaning, remedy }: &FieldCode) -> Self {
        Self {
            id: format!("field-{code}"),
            name: code,
            status: "",
            meaning: line(meaning),
            remedy: line(remedy),
        }
    }
}

struct Group<'a> {
    /// The anchor, for the links at the top of the page.
    id: String,
    name: &'a str,
    operations: Vec<Operation<'a>>,
}

struct Operation<'a> {
    id: &'a str,
    method: &'a str,
    path: &'a str,
    summary: &'a str,
    description: Vec<Line<'a>>,
    /// The headers that authenticate a caller.
    credentials: Vec<&'static str>,
    parameters: Vec<Parameter<'a>>,
    body: Option<Shape<'a>>,
    answers: Vec<Answer<'a>>,
}

struct Parameter<'a> {
    name: &'a str,
    /// The part of the request that it belongs to.
    place: &'a str,
    kind: Vec<Piece<'a>>,
    description: Line<'a>,
}

struct Answer<'a> {
    status: &'a str,
    description: Line<'a>,
    body: Vec<Piece<'a>>,
}

struct Schema<'a> {
    name: &'a str,
    description: Vec<Line<'a>>,
    content: Content<'a>,
}

enum Content<'a> {
    OneOf(Vec<&'a str>),
    Object(Shape<'a>),
}

/// The fields of an object, and an example of one.
struct Shape<'a> {
    fields: Vec<Field<'a>>,
    example: String,
}

struct Field<'a> {
    name: &'a str,
    is_required: bool,
    kind: Vec<Piece<'a>>,
    description: Line<'a>,
    bounds: Vec<(&'static str, String)>,
}

/// A part of the name of a type.
enum Piece<'a> {
    Words(Cow<'a, str>),
    /// A schema, which the page links to.
    Schema(&'a str),
}

/// Reads the OpenAPI document into the parts of the page.
#[derive(Clone, Copy)]
struct Document<'a>(&'a Value);

impl<'a> Document<'a> {
    fn page(self) -> Page<'a> {
        let info = &self.0["info"];
        let schemas = members(&self.0["components"]["schemas"]);
        Page {
            title: text(&info["title"]),
            version: text(&info["version"]),
            description: prose(text(&info["description"])),
            groups: self.groups(),
            events: catalogue::entries(),
            problems: codes::PROBLEMS.iter().map(Code::of_problem).collect(),
            fields: codes::FIELDS.iter().map(Code::of_field).collect(),
            schemas: schemas.map(|(name, schema)| self.schema(name, schema)).collect(),
        }
    }

    fn operations(self) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> {
        members(&self.0["paths"])
            .flat_map(|(path, item)| members(item).map(move |(method, operation)| (path, method, operation)))
    }

    /// The groups in alphabetical order, after the group of upsert and ingest.
    fn groups(self) -> Vec<Group<'a>> {
        let mut names: Vec<&'a str> = self.operations().map(|(_, _, operation)| tag_of(operation)).collect();
        names.sort_by_key(|name| (!name.starts_with("Upsert"), *name));
        names.dedup();
        let group = |name: &'a str| {
            let found = self.operations().filter(|(_, _, operation)| tag_of(operation) == name);
            let operations = found.map(|(path, method, operation)| self.operation(path, method, operation));
            Group { id: group_id(name), name, operations: operations.collect() }
        };
        names.into_iter().map(group).collect()
    }

    fn operation(self, path: &'a str, method: &'a str, operation: &'a Value) -> Operation<'a> {
        let schemes = items(&operation["security"]).flat_map(members).map(|(scheme, _)| scheme);
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        Operation {
            id: text(&operation["operationId"]),
            method,
            path,
            summary: text(&operation["summary"]),
            description: prose(text(&operation["description"])),
            credentials: schemes.map(credential).collect(),
            parameters: items(&operation["parameters"]).map(parameter).collect(),
            body: (!body.is_null()).then(|| self.shape(self.resolve(body))),
            answers: members(&operation["responses"]).map(answer).collect(),
        }
    }

    fn schema(self, name: &'a str, schema: &'a Value) -> Schema<'a> {
        let content = match schema["enum"].as_array() {
            Some(words) => Content::OneOf(words.iter().map(text).collect()),
            None => Content::Object(self.shape(schema)),
        };
        Schema { name, description: prose(text(&schema["description"])), content }
    }

    /// An object's fields. If there are several kinds of objects, a field is required if all of them have it.
    fn shape(self, schema: &'a Value) -> Shape<'a> {
        let choices: Vec<&Value> = items(&schema["oneOf"]).map(|choice| self.resolve(choice)).collect();
        let choices = if choices.is_empty() { vec![schema] } else { choices };
        let is_required = |name: &str| {
            let required =
                |choice| self.parts(choice).any(|part| items(&part["required"]).any(|one| one == name));
            choices.iter().copied().all(required)
        };
        let mut fields: Vec<Field<'a>> = Vec::new();
        for (name, property) in
            choices.iter().flat_map(|choice| self.parts(choice)).flat_map(|part| members(&part["properties"]))
        {
            if fields.iter().any(|field| field.name == name) {
                continue;
            }
            fields.push(Field {
                name,
                is_required: is_required(name),
                kind: kind(property),
                description: line(text(&property["description"])),
                bounds: bounds(property),
            });
        }
        let example = self.example(schema, EXAMPLE_DEPTH);
        Shape { fields, example: serde_json::to_string_pretty(&example).unwrap_or_default() }
    }

    /// A schema and the schemas it is composed of.
    fn parts(self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        let parts = items(&schema["allOf"]).map(move |part| self.resolve(part));
        std::iter::once(schema).chain(parts)
    }

    fn example(self, schema: &'a Value, depth: usize) -> Value {
        let schema = self.resolve(schema);
        if let Some(example) = schema.get("example").or_else(|| items(&schema["examples"]).next()) {
            return example.clone();
        }
        if depth == 0 {
            return Value::Null;
        }
        if let Some(word) = items(&schema["enum"]).next() {
            return word.clone();
        }
        if let Some(choice) =
            items(&schema["oneOf"]).chain(items(&schema["anyOf"])).find(|one| one["type"] != "null")
        {
            return self.example(choice, depth - 1);
        }
        match schema["type"].as_str().or_else(|| items(&schema["type"]).find_map(Value::as_str)) {
            Some("string") => match schema["format"].as_str() {
                Some("date-time") => "2026-05-12T08:30:00Z".into(),
                Some("date") => "2026-05-12".into(),
                _ => "text".into(),
            },
            Some("integer" | "number") => 1.into(),
            Some("boolean") => true.into(),
            Some("array") => Value::Array(vec![self.example(&schema["items"], depth - 1)]),
            _ => {
                let members = self.parts(schema).flat_map(|part| members(&part["properties"]));
                let members =
                    members.map(|(name, property)| (name.to_owned(), self.example(property, depth - 1)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    fn resolve(self, schema: &'a Value) -> &'a Value {
        let target = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|pointer| self.0.pointer(pointer)).unwrap_or(schema)
    }
}

fn group_id(tag: &str) -> String {
    format!("group-{}", tag.to_lowercase().replace(|char: char| !char.is_ascii_alphanumeric(), "-"))
}

fn tag_of(operation: &Value) -> &str {
    text(&operation["tags"][0])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, member)| (name.as_str(), member))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The header that a security scheme needs.
fn credential(scheme: &str) -> &'static str {
    match scheme {
        "ingest_key" => "X-Service-Ingest-Key: <key>",
        "inbound_key" => "X-Service-Inbound-Key: <key>",
        _ => "Authorization: Bearer <token>",
    }
}

fn parameter(parameter: &Value) -> Parameter<'_> {
    Parameter {
        name: text(&parameter["name"]),
        place: text(&parameter["in"]),
        kind: kind(&parameter["schema"]),
        description: line(text(&parameter["description"])),
    }
}

fn answer<'a>((status, response): (&'a str, &'a Value)) -> Answer<'a> {
    let body = members(&response["content"]).next().map(|(_, content)| kind(&content["schema"]));
    Answer { status, description: line(text(&response["description"])), body: body.unwrap_or_default() }
}

/// A schema's type in a few words.
fn kind(schema: &Value) -> Vec<Piece<'_>> {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return vec![Piece::Schema(name)];
    }
    let choices: Vec<Vec<Piece>> = items(&schema["oneOf"]).chain(items(&schema["anyOf"])).map(kind).collect();
    if !choices.is_empty() {
        return either(choices);
    }
    let mut pieces = match &schema["type"] {
        Value::String(name) => named_kind(name, schema),
        Value::Array(names) => either(names.iter().map(|name| named_kind(text(name), schema)).collect()),
        _ => vec![Piece::Words("any".into())],
    };
    if let Some(format) = schema["format"].as_str().filter(|format| format.starts_with("date")) {
        pieces.push(Piece::Words(format!(" ({format})").into()));
    }
    pieces
}

fn named_kind<'a>(name: &'a str, schema: &'a Value) -> Vec<Piece<'a>> {
    if name != "array" {
        return vec![Piece::Words(name.into())];
    }
    let mut pieces = vec![Piece::Words("array of ".into())];
    pieces.extend(kind(&schema["items"]));
    pieces
}

fn either(choices: Vec<Vec<Piece<'_>>>) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for choice in choices {
        if !pieces.is_empty() {
            pieces.push(Piece::Words(" or ".into()));
        }
        pieces.extend(choice);
    }
    pieces
}

fn bounds(schema: &Value) -> Vec<(&'static str, String)> {
    let names = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"];
    let found = names.into_iter().filter(|name| !schema[*name].is_null());
    found.map(|name| (name, schema[name].to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::problem::Problem;
    use rapport_domain::invalid::Fault;
    use serde_json::json;

    #[test]
    fn the_page_shows_every_operation_and_schema_and_is_self_contained() {
        let document = serde_json::to_value(openapi::document()).unwrap();
        let page = rendered(&document);
        for (path, _) in members(&document["paths"]) {
            assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        }
        for (name, _) in members(&document["components"]["schemas"]) {
            assert!(page.contains(&format!("id=\"schema-{name}\"")), "{name}");
        }
        for header in
            ["X-Service-Ingest-Key: &#60;key", "X-Service-Inbound-Key: &#60;key", "Bearer &#60;token"]
        {
            assert!(page.contains(header), "{header}");
        }
        for (kind, _) in members(&document["webhooks"]) {
            assert!(page.contains(&format!("<h3 id=\"event-{}\">", kind.replace(['.', '_'], "-"))), "{kind}");
        }
        for code in Problem::codes().into_iter().chain(Fault::CODES) {
            let anchor = codes::anchor(code).unwrap_or_else(|| panic!("{code} has no anchor"));
            assert!(page.contains(&format!("<tr id=\"{anchor}\">")), "{code}");
        }
        for foreign in ["<script", " style=", " src="] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        for link in page.split("href=\"").skip(1) {
            assert!(link.starts_with(['#', '/']) && !link.starts_with("//"), "{}", &link[..40]);
        }
        assert!(!STYLE.contains("@import"));
        assert!(
            STYLE.split("url(").skip(1).all(|place| place.starts_with("\"/assets/")),
            "the typeface is ours"
        );
        for link in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
    }

    #[test]
    fn text_is_escaped() {
        let document = json!({"info": {"title": "<b>\"&'", "description": "a `<c>` d"}});
        let page = rendered(&document);
        assert!(page.contains("&#60;b&#62;&#34;&#38;&#39;"));
        assert!(page.contains("<p>a <code>&#60;c&#62;</code> d</p>"));
    }
}
