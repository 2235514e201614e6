//! What makes a document incompatible with an earlier one. A request may become wider and a response richer, never the
//! other way round.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Display;

use serde_json::Value;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// Bounds that must not become smaller, and those that must not become larger.
const UPPER: [&str; 3] = ["maximum", "maxLength", "maxItems"];
const LOWER: [&str; 3] = ["minimum", "minLength", "minItems"];
/// The schemas whose `code` programs compare.
const CODES: [&str; 2] = ["/components/schemas/Problem", "/components/schemas/FieldError"];

/// Every change that can break a client of the earlier document, in words.
pub fn breaks(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (path, item) in members(&before["paths"]) {
        for method in METHODS.into_iter().filter(|method| item[*method].is_object()) {
            let place = format!("{} {path}", method.to_uppercase());
            let now = &after["paths"][path][method];
            if now.is_null() {
                found.push(format!("{place}: the operation is gone"));
            } else {
                Comparison::new(before, after, &mut found).operation(&place, &item[method], now);
            }
        }
    }
    for (kind, item) in members(&before["webhooks"]) {
        let now = &after["webhooks"][kind]["post"];
        if now.is_null() {
            found.push(format!("{kind}: the event is gone"));
        } else {
            Comparison::new(before, after, &mut found).event(kind, &item["post"], now);
        }
    }
    for schema in CODES {
        let code = format!("{schema}/properties/code");
        let codes = |document: &Value| document.pointer(&code).map(words).unwrap_or_default();
        let now = codes(after);
        let gone = codes(before).into_iter().filter(|code| !now.contains(code));
        found.extend(gone.map(|code| format!("the error code {code} is gone")));
    }
    found
}

/// Who writes what a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// The client: what was accepted must be accepted.
    Client,
    /// The service: what was there must be there.
    Service,
}

struct Comparison<'a, 'f> {
    before: &'a Value,
    after: &'a Value,
    /// Pairs of references that are being compared, since schemas may refer to each other.
    seen: HashSet<(String, String)>,
    found: &'f mut Vec<String>,
}

/// A part of a request, a response or a payload: where that is, and the way to the part.
#[derive(Clone)]
struct Place {
    whole: String,
    pointer: String,
}

impl Place {
    fn of(whole: impl Into<String>) -> Self {
        Self { whole: whole.into(), pointer: String::new() }
    }

    fn member(&self, name: &str) -> Self {
        Self { whole: self.whole.clone(), pointer: format!("{}/{name}", self.pointer) }
    }

    fn item(&self) -> Self {
        Self { whole: self.whole.clone(), pointer: format!("{}[]", self.pointer) }
    }
}

impl<'a, 'f> Comparison<'a, 'f> {
    fn new(before: &'a Value, after: &'a Value, found: &'f mut Vec<String>) -> Self {
        Self { before, after, seen: HashSet::new(), found }
    }

    fn say(&mut self, place: &str, what: impl Display) {
        self.found.push(format!("{place}: {what}"));
    }

    fn say_at(&mut self, place: &Place, what: impl Display) {
        let Place { whole, pointer } = place;
        let joint = if pointer.is_empty() { "" } else { " " };
        self.found.push(format!("{whole}{joint}{pointer}: {what}"));
    }

    fn operation(&mut self, place: &str, before: &'a Value, after: &'a Value) {
        if before["operationId"] != after["operationId"] {
            self.say(place, format!("the operationId was {}", text(&before["operationId"])));
        }
        let (old, new) = (parameters(before), parameters(after));
        for ((inside, name), parameter) in &old {
            match new.get(&(*inside, *name)) {
                None => self.say(place, format!("the parameter {name} is gone")),
                Some(now) => {
                    let place = Place::of(format!("{place} {name}"));
                    self.schemas(&place, &parameter["schema"], &now["schema"], Writer::Client);
                    if now["required"] == true && parameter["required"] != true {
                        self.say_at(&place, "is required now");
                    }
                }
            }
        }
        let added =
            new.iter().filter(|(key, parameter)| !old.contains_key(*key) && parameter["required"] == true);
        for ((_, name), _) in added {
            self.say(place, format!("the parameter {name} is required"));
        }
        let (old, new) = (&before["requestBody"], &after["requestBody"]);
        if new["required"] == true && old["required"] != true {
            self.say(place, "a body is required now");
        }
        self.contents(&format!("{place} request"), &old["content"], &new["content"], Writer::Client);
        for (status, response) in members(&before["responses"]).filter(|(status, _)| status.starts_with('2'))
        {
            let now = &after["responses"][status];
            if now.is_null() {
                self.say(place, format!("the response {status} is gone"));
            } else {
                let place = format!("{place} {status}");
                self.contents(&place, &response["content"], &now["content"], Writer::Service);
            }
        }
    }

    fn event(&mut self, kind: &str, before: &'a Value, after: &'a Value) {
        let (old, new) = (parameters(before), parameters(after));
        for (inside, name) in old.keys().filter(|key| !new.contains_key(*key)) {
            self.say(kind, format!("the {inside} {name} is gone"));
        }
        let content = |event: &'a Value| &event["requestBody"]["content"];
        self.contents(&format!("{kind} payload"), content(before), content(after), Writer::Service);
    }

    fn contents(&mut self, place: &str, before: &'a Value, after: &'a Value, writer: Writer) {
        for (media_type, content) in members(before) {
            match after.get(media_type) {
                None => self.say(place, format!("{media_type} is gone")),
                Some(now) => self.schemas(&Place::of(place), &content["schema"], &now["schema"], writer),
            }
        }
    }

    fn schemas(&mut self, place: &Place, before: &'a Value, after: &'a Value, writer: Writer) {
        if let (Some(old), Some(new)) = (before["$ref"].as_str(), after["$ref"].as_str())
            && !self.seen.insert((old.to_owned(), new.to_owned()))
        {
            return;
        }
        let (old, new) = (Shape::of(self.before, before), Shape::of(self.after, after));
        match writer {
            Writer::Client => self.request(place, &old, &new),
            Writer::Service => self.response(place, &old, &new),
        }
        if let (Some(old), Some(new)) = (old.item, new.item) {
            self.schemas(&place.item(), old, new, writer);
        }
        for (name, property) in &old.properties {
            if let Some(now) = new.properties.get(name) {
                self.schemas(&place.member(name), property, now, writer);
            }
        }
        if let (Some(old), Some(new)) = (before["$ref"].as_str(), after["$ref"].as_str()) {
            self.seen.remove(&(old.to_owned(), new.to_owned()));
        }
    }

    fn request(&mut self, place: &Place, old: &Shape<'a>, new: &Shape<'a>) {
        for kind in old.kinds.iter().filter(|kind| !new.accepts(kind)) {
            self.say_at(place, format!("no longer accepts {kind}"));
        }
        if old.kinds.is_empty() && !new.kinds.is_empty() {
            self.say_at(place, "no longer accepts any type");
        }
        if !new.words.is_empty() {
            for word in old.words.iter().filter(|word| !new.words.contains(*word)) {
                self.say_at(place, format!("no longer accepts {word:?}"));
            }
            if old.words.is_empty() && old.kinds.contains("string") {
                self.say_at(place, "accepts only some words now");
            }
        }
        for name in old.properties.keys().filter(|name| !new.properties.contains_key(*name)) {
            self.say_at(&place.member(name), "is gone");
        }
        for name in new.required.iter().filter(|name| !old.required.contains(*name)) {
            self.say_at(&place.member(name), "is required now");
        }
        for name in UPPER.into_iter().chain(LOWER) {
            match (old.bounds.get(name), new.bounds.get(name)) {
                (Some(old), Some(new)) if is_narrower(name, *old, *new) => {
                    self.say_at(place, format!("{name} is {new}, was {old}"));
                }
                (None, Some(new)) => self.say_at(place, format!("{name} is {new}, was any")),
                _ => {}
            }
        }
    }

    fn response(&mut self, place: &Place, old: &Shape<'a>, new: &Shape<'a>) {
        for kind in new.kinds.iter().filter(|kind| !old.accepts(kind)) {
            self.say_at(place, format!("can be {kind} now"));
        }
        if new.kinds.is_empty() && !old.kinds.is_empty() {
            self.say_at(place, "can be anything now");
        }
        for name in old.properties.keys() {
            if !new.properties.contains_key(name) {
                self.say_at(&place.member(name), "is gone");
            } else if old.required.contains(name) && !new.required.contains(name) {
                self.say_at(&place.member(name), "is no longer always there");
            }
        }
    }
}

/// What a schema says, with its references, parts and choices put together.
#[derive(Default)]
struct Shape<'a> {
    /// Its types. Empty if it can be anything.
    kinds: BTreeSet<String>,
    words: BTreeSet<String>,
    properties: BTreeMap<String, &'a Value>,
    required: BTreeSet<String>,
    item: Option<&'a Value>,
    bounds: BTreeMap<String, f64>,
}

impl<'a> Shape<'a> {
    fn of(document: &'a Value, schema: &'a Value) -> Self {
        let mut shape = Self::default();
        shape.add(document, schema, true);
        shape
    }

    fn add(&mut self, document: &'a Value, schema: &'a Value, is_certain: bool) {
        let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        if let Some(found) = reference.and_then(|pointer| document.pointer(pointer)) {
            self.add(document, found, is_certain);
        }
        let kinds = items(&schema["type"]).chain([&schema["type"]]).filter_map(Value::as_str);
        self.kinds.extend(kinds.map(str::to_owned));
        self.words.extend(words(schema));
        self.properties
            .extend(members(&schema["properties"]).map(|(name, property)| (name.to_owned(), property)));
        if is_certain {
            self.required.extend(items(&schema["required"]).filter_map(Value::as_str).map(str::to_owned));
        }
        self.item = self.item.or_else(|| schema.get("items"));
        for name in UPPER.into_iter().chain(LOWER) {
            self.bounds.extend(schema[name].as_f64().map(|bound| (name.to_owned(), bound)));
        }
        items(&schema["allOf"]).for_each(|part| self.add(document, part, is_certain));
        let choices = || items(&schema["oneOf"]).chain(items(&schema["anyOf"]));
        // Next to null, a single choice is certain unless the value is null.
        let is_only = choices().filter(|choice| choice["type"] != "null").count() == 1;
        choices().for_each(|choice| self.add(document, choice, is_certain && is_only));
    }

    fn accepts(&self, kind: &str) -> bool {
        self.kinds.is_empty()
            || self.kinds.contains(kind)
            || kind == "integer" && self.kinds.contains("number")
    }
}

fn is_narrower(bound: &str, old: f64, new: f64) -> bool {
    if UPPER.contains(&bound) { new < old } else { new > old }
}

fn parameters(operation: &Value) -> BTreeMap<(&str, &str), &Value> {
    let parameters = items(&operation["parameters"]);
    parameters.map(|parameter| ((text(&parameter["in"]), text(&parameter["name"])), parameter)).collect()
}

fn words(schema: &Value) -> BTreeSet<String> {
    items(&schema["enum"]).filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, member)| (name.as_str(), member))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
