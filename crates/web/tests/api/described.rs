//! Compares every response of a test with the OpenAPI document: its status, media type and body must be described.
//!
//! The document itself allows members that it doesn't list, as clients must expect new ones. Here they are refused, so
//! that nothing is sent without being described.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use hyper::Method;
use hyper::header::CONTENT_TYPE;
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use crate::harness::Answer;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document =
        serde_json::to_value(rapport_web::openapi_document()).expect("the document is plain data");
    let schemas = document["components"]["schemas"].as_object_mut().expect("schemas");
    // Where a schema is used, it is closed. Its own top level stays open, because another schema may extend it.
    schemas.values_mut().for_each(close_members);
    document
});

/// Panics unless the document describes this response. Ignores paths and methods that are not in the document.
pub fn check(method: &Method, path: &str, answer: &Answer) {
    let Some((template, operation)) = find_operation(method, path) else { return };
    let place = format!("{method} {path} ({})", answer.status);
    let status = answer.status.to_string();
    let response = operation["responses"].get(&status);
    let response =
        response.unwrap_or_else(|| panic!("{place}: the document doesn't list this status: {answer:?}"));
    let contents = response.get("content").and_then(Value::as_object);
    let Some(contents) = contents.filter(|contents| !contents.is_empty()) else {
        assert!(answer.body.is_empty(), "{place}: the document describes no body: {answer:?}");
        return;
    };
    let media_type =
        answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default();
    let content = contents.get(media_type);
    let content = content.unwrap_or_else(|| panic!("{place}: the document doesn't list {media_type:?}"));
    if !media_type.ends_with("json") {
        return;
    }
    let name = format!("{method} {template} {status} {media_type}");
    let errors = errors(&name, &content["schema"], &answer.json());
    assert!(
        errors.is_empty(),
        "{place}: the document describes another body: {errors:#?}\n{}",
        answer.text()
    );
}

/// Panics unless the document describes this payload.
pub fn check_payload(kind: &str, payload: &Value) {
    let content = &DOCUMENT["webhooks"][kind]["post"]["requestBody"]["content"]["application/json"];
    assert!(content.is_object(), "the document doesn't list the event {kind}");
    let errors = errors(kind, &content["schema"], payload);
    assert!(errors.is_empty(), "{kind}: the document describes another payload: {errors:#?}\n{payload}");
}

/// The operation with its path template. Templates with fewer parameters win, as in the router.
fn find_operation(method: &Method, path: &str) -> Option<(&'static str, &'static Value)> {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    let paths = DOCUMENT["paths"].as_object().expect("paths").iter();
    let matching = paths.filter(|(template, _)| matches(template, &parts));
    let (template, item) = matching.min_by_key(|(template, _)| template.matches('{').count())?;
    Some((template, item.get(method.as_str().to_lowercase())?))
}

fn matches(template: &str, parts: &[&str]) -> bool {
    let template: Vec<&str> = template.strip_suffix('/').unwrap_or(template).split('/').collect();
    let fits =
        |(named, part): (&&str, &&str)| if named.starts_with('{') { !part.is_empty() } else { named == part };
    template.len() == parts.len() && template.iter().zip(parts).all(fits)
}

fn errors(name: &str, schema: &Value, body: &Value) -> Vec<String> {
    let validator = validator(name, schema);
    let errors = validator.iter_errors(body);
    errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The validator of a schema, compiled once per process.
fn validator(name: &str, schema: &Value) -> Arc<Validator> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let made = compiled.entry(name.to_owned()).or_insert_with(|| {
        let mut schema = schema.clone();
        close(&mut schema);
        schema["components"] = json!({ "schemas": DOCUMENT["components"]["schemas"] });
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        Arc::new(options.build(&schema).unwrap_or_else(|error| panic!("{name}: {error}")))
    });
    Arc::clone(made)
}

/// Refuses members that a schema doesn't list, unless it says which others there can be.
fn close(schema: &mut Value) {
    close_members(schema);
    let Some(members) = schema.as_object_mut() else { return };
    let lists_members = ["$ref", "properties", "allOf"].iter().any(|keyword| members.contains_key(*keyword));
    if lists_members && !members.contains_key("additionalProperties") {
        members.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}

/// Closes the schemas inside a schema. Those in `allOf` are parts of the same object.
fn close_members(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    let each = |value: &mut Value, change: fn(&mut Value)| match value {
        Value::Array(values) => values.iter_mut().for_each(change),
        Value::Object(_) => change(value),
        _ => {}
    };
    fn values(value: &mut Value) {
        value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(close);
    }
    for (keyword, value) in members {
        match keyword.as_str() {
            "properties" => values(value),
            "allOf" => each(value, close_members),
            "oneOf" | "anyOf" | "items" | "additionalProperties" => each(value, close),
            _ => {}
        }
    }
}
