//! The OpenAPI document as a page. It is rendered once at startup and needs no scripts and no other hosts.

use std::fmt::Write;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Map, Value};
use utoipa::openapi::OpenApi;

use crate::api::{Api, openapi};

const PATH: &str = "/api/docs/";
pub const STYLE_PATH: &str = "/api/docs/style.css";
const STYLE: &str =
    concat!(include_str!("../../assets/css/tokens.css"), include_str!("../../assets/css/docs.css"));
/// How deep an example follows references, since schemas may refer to each other.
const EXAMPLE_DEPTH: usize = 6;

pub fn routes(document: &OpenApi) -> Router<Api> {
    let document = serde_json::to_value(document).expect("the document is plain data");
    let page = Bytes::from(Page { document: &document }.render());
    let policy =
        "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    let headers = |media_type| {
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        ]
    };
    let page_headers = headers("text/html; charset=utf-8");
    let style_headers = headers("text/css; charset=utf-8");
    Router::new()
        .route(PATH, get(async move || (page_headers.clone(), page.clone())))
        .route(STYLE_PATH, get(async move || (style_headers.clone(), STYLE)))
}

struct Page<'a> {
    document: &'a Value,
}

impl Page<'_> {
    fn render(&self) -> String {
        let mut out = String::with_capacity(64 << 10);
        let info = &self.document["info"];
        let title = escape(text(&info["title"]));
        let _ = writeln!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} API</title>\n\
             <link rel=\"stylesheet\" href=\"{STYLE_PATH}\">\n</head>\n<body>\n<header>\n<p class=\"back\"><a href=\"/\">Back to {title}</a></p>\n<h1>{title} API \
             <small>{}</small></h1>\n{}<p>OpenAPI document: <a href=\"{}\">openapi.json</a></p>\n</header>\n<main>",
            escape(text(&info["version"])),
            prose(text(&info["description"])),
            openapi::PATH,
        );
        out.push_str("<nav aria-label=\"Groups\">");
        for tag in self.tags().into_iter().chain(["Schemas"]) {
            let _ = writeln!(out, "<a href=\"#{}\">{}</a>", group_id(tag), escape(tag));
        }
        out.push_str("</nav>\n");
        for tag in self.tags() {
            let _ = writeln!(out, "<section>\n<h2 id=\"{}\">{}</h2>", group_id(tag), escape(tag));
            for (path, method, operation) in self.operations().filter(|(_, _, found)| tag_of(found) == tag) {
                self.operation(&mut out, path, method, operation);
            }
            out.push_str("</section>\n");
        }
        let _ = writeln!(out, "<section>\n<h2 id=\"{}\">Schemas</h2>", group_id("Schemas"));
        for (name, schema) in members(&self.document["components"]["schemas"]) {
            self.schema_entry(&mut out, name, schema);
        }
        out.push_str("</section>\n</main>\n</body>\n</html>\n");
        out
    }

    fn operations(&self) -> impl Iterator<Item = (&String, &String, &Value)> {
        members(&self.document["paths"])
            .flat_map(|(path, item)| members(item).map(move |(method, operation)| (path, method, operation)))
    }

    /// The groups in alphabetical order, after the group of upsert and ingest.
    fn tags(&self) -> Vec<&str> {
        let mut tags: Vec<&str> = self.operations().map(|(_, _, operation)| tag_of(operation)).collect();
        tags.sort_by_key(|tag| (!tag.starts_with("Upsert"), *tag));
        tags.dedup();
        tags
    }

    fn operation(&self, out: &mut String, path: &str, method: &str, operation: &Value) {
        let _ = write!(
            out,
            "<details id=\"{}\">\n<summary><code class=\"method {method}\">{}</code> <code>{}</code> \
             <span>{}</span></summary>\n{}",
            escape(text(&operation["operationId"])),
            method.to_uppercase(),
            escape(path),
            escape(text(&operation["summary"])),
            prose(text(&operation["description"])),
        );
        let schemes: Vec<&String> =
            items(&operation["security"]).flat_map(|one| members(one).map(|(name, _)| name)).collect();
        for scheme in schemes {
            let how = match scheme.as_str() {
                "ingest_key" => "X-Service-Ingest-Key: &lt;key&gt;",
                "inbound_key" => "X-Service-Inbound-Key: &lt;key&gt;",
                _ => "Authorization: Bearer &lt;token&gt;",
            };
            let _ = writeln!(out, "<p>Authenticate with <code>{how}</code>.</p>");
        }
        Self::parameters(out, operation);
        self.request_body(out, operation);
        Self::responses(out, operation);
        out.push_str("</details>\n");
    }

    fn parameters(out: &mut String, operation: &Value) {
        let mut rows = items(&operation["parameters"]).peekable();
        if rows.peek().is_none() {
            return;
        }
        out.push_str(
            "<h3>Parameters</h3>\n<table>\n\
             <tr><th>Name</th><th>In</th><th>Type</th><th>Description</th></tr>\n",
        );
        for parameter in rows {
            let _ = writeln!(
                out,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(text(&parameter["name"])),
                escape(text(&parameter["in"])),
                kind(&parameter["schema"]),
                line(text(&parameter["description"])),
            );
        }
        out.push_str("</table>\n");
    }

    fn request_body(&self, out: &mut String, operation: &Value) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            return;
        }
        out.push_str("<h3>Body</h3>\n");
        self.properties(out, self.resolve(schema));
        self.example(out, schema);
    }

    fn responses(out: &mut String, operation: &Value) {
        out.push_str(
            "<h3>Responses</h3>\n<table>\n<tr><th>Status</th><th>Description</th><th>Body</th></tr>\n",
        );
        for (status, response) in members(&operation["responses"]) {
            let body = members(&response["content"]).next().map(|(_, content)| kind(&content["schema"]));
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(status),
                line(text(&response["description"])),
                body.unwrap_or_default(),
            );
        }
        out.push_str("</table>\n");
    }

    fn schema_entry(&self, out: &mut String, name: &str, schema: &Value) {
        let _ = write!(
            out,
            "<details id=\"schema-{0}\">\n<summary><code>{0}</code></summary>\n{1}",
            escape(name),
            prose(text(&schema["description"])),
        );
        if let Some(words) = schema["enum"].as_array() {
            let words: Vec<String> =
                words.iter().map(|word| format!("<code>{}</code>", escape(text(word)))).collect();
            let _ = writeln!(out, "<p>One of {}.</p>", words.join(", "));
        } else {
            self.properties(out, schema);
            self.example(out, schema);
        }
        out.push_str("</details>\n");
    }

    fn properties(&self, out: &mut String, schema: &Value) {
        let required: Vec<&str> =
            self.parts(schema).flat_map(|part| items(&part["required"])).map(text).collect();
        out.push_str("<table>\n<tr><th>Field</th><th>Type</th><th>Description</th></tr>\n");
        for (name, property) in self.parts(schema).flat_map(|part| members(&part["properties"])) {
            let mark = if required.contains(&name.as_str()) { " <b>required</b>" } else { "" };
            let _ = writeln!(
                out,
                "<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{}{}</td></tr>",
                escape(name),
                kind(property),
                line(text(&property["description"])),
                bounds(property),
            );
        }
        out.push_str("</table>\n");
    }

    /// A schema and the schemas it is composed of.
    fn parts<'s>(&'s self, schema: &'s Value) -> impl Iterator<Item = &'s Value> {
        let parts = items(&schema["allOf"]).map(|part| self.resolve(part));
        std::iter::once(schema).chain(parts)
    }

    fn example(&self, out: &mut String, schema: &Value) {
        let example = self.example_of(schema, EXAMPLE_DEPTH);
        let shown = serde_json::to_string_pretty(&example).unwrap_or_default();
        let _ = writeln!(out, "<pre>{}</pre>", escape(&shown));
    }

    fn example_of(&self, schema: &Value, depth: usize) -> Value {
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
            return self.example_of(choice, depth - 1);
        }
        match schema["type"].as_str().or_else(|| items(&schema["type"]).find_map(Value::as_str)) {
            Some("string") => match schema["format"].as_str() {
                Some("date-time") => "2026-05-12T08:30:00Z".into(),
                Some("date") => "2026-05-12".into(),
                _ => "text".into(),
            },
            Some("integer" | "number") => 1.into(),
            Some("boolean") => true.into(),
            Some("array") => Value::Array(vec![self.example_of(&schema["items"], depth - 1)]),
            _ => {
                let members = self.parts(schema).flat_map(|part| members(&part["properties"]));
                let members =
                    members.map(|(name, property)| (name.clone(), self.example_of(property, depth - 1)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let target = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|pointer| self.document.pointer(pointer)).unwrap_or(schema)
    }
}

/// The anchor of a group, for the links at the top of the page.
fn group_id(tag: &str) -> String {
    format!("group-{}", tag.to_lowercase().replace(|char: char| !char.is_ascii_alphanumeric(), "-"))
}

fn tag_of(operation: &Value) -> &str {
    text(&operation["tags"][0])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A schema's type in a few words, with a link if it has a name.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("<a href=\"#schema-{0}\">{0}</a>", escape(name));
    }
    let choices: Vec<String> = items(&schema["oneOf"]).chain(items(&schema["anyOf"])).map(kind).collect();
    if !choices.is_empty() {
        return choices.join(" or ");
    }
    let one = |name: &str| match name {
        "array" => format!("array of {}", kind(&schema["items"])),
        name => escape(name),
    };
    let kinds: Vec<String> = match &schema["type"] {
        Value::String(name) => vec![one(name)],
        Value::Array(names) => names.iter().map(|name| one(text(name))).collect(),
        _ => vec!["any".to_owned()],
    };
    let format = schema["format"].as_str().filter(|format| format.starts_with("date"));
    let format = format.map(|format| format!(" ({format})")).unwrap_or_default();
    kinds.join(" or ") + &format
}

fn bounds(schema: &Value) -> String {
    let names = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"];
    let found = names.into_iter().filter(|name| !schema[*name].is_null());
    let shown = found.map(|name| format!(" <small>{name} {}</small>", escape(&schema[name].to_string())));
    shown.collect::<Vec<_>>().concat()
}

/// Renders paragraphs, with `code` marked up.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        out.push_str("<p>");
        out.push_str(&line(paragraph));
        out.push_str("</p>\n");
    }
    out
}

/// Renders a text with `code` marked up.
fn line(text: &str) -> String {
    let part = |(place, part): (usize, &str)| {
        let part = escape(part);
        if place % 2 == 1 { format!("<code>{part}</code>") } else { part }
    };
    text.split('`').enumerate().map(part).collect()
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_shows_every_operation_and_schema_and_is_self_contained() {
        let document = serde_json::to_value(openapi::document()).unwrap();
        let page = Page { document: &document }.render();
        for (path, _) in members(&document["paths"]) {
            assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        }
        for (name, _) in members(&document["components"]["schemas"]) {
            assert!(page.contains(&format!("id=\"schema-{name}\"")), "{name}");
        }
        for header in ["X-Service-Ingest-Key: &lt;key", "X-Service-Inbound-Key: &lt;key", "Bearer &lt;token"]
        {
            assert!(page.contains(header), "{header}");
        }
        for foreign in ["<script", " style=", " src="] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        for link in page.split("href=\"").skip(1) {
            assert!(link.starts_with(['#', '/']) && !link.starts_with("//"), "{}", &link[..40]);
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
        for link in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
    }

    #[test]
    fn text_is_escaped() {
        let document = json!({"info": {"title": "<b>\"&'", "description": "a `<c>` d"}});
        let page = Page { document: &document }.render();
        assert!(page.contains("&lt;b&gt;&quot;&amp;&#39;") && page.contains("<code>&lt;c&gt;</code>"));
    }
}
