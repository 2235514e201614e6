//! The members of a payload, read from its schema.

use rapport_domain::event::Kind;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Array, ArrayItems, Schema};

use crate::shared::prose::{Line, line};

/// How deep a payload can be. Schemas may refer to each other.
const MAX_DEPTH: usize = 8;

/// A member of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// `data.account.id`. The members of an array's items have `[]` in it.
    pub path: String,
    /// `string`, `string (date-time) or null`.
    pub kind: String,
    /// `always`, or when it is there.
    pub presence: String,
    /// What it means, with `code` in backticks.
    pub description: String,
    /// The values that it can have, if there are only some.
    pub values: Vec<String>,
}

impl Member {
    /// When it is there, with `code` marked up.
    pub fn occasion(&self) -> Line<'_> {
        line(&self.presence)
    }

    /// What it means, with `code` marked up.
    pub fn meaning(&self) -> Line<'_> {
        line(&self.description)
    }
}

/// Every member of the payload of a kind in its order, each before those inside it.
pub fn of(kind: Kind) -> Vec<Member> {
    let (payload, named) = kind.payload_schema();
    let mut found = Vec::new();
    let whole = Parent { path: "", presence: "always" };
    Schemas(named).read_members(whole, &payload, MAX_DEPTH, &mut found);
    found
}

/// An object whose members are read.
#[derive(Clone, Copy)]
struct Parent<'a> {
    path: &'a str,
    /// When its required members are there.
    presence: &'a str,
}

/// The named schemas that a payload refers to.
struct Schemas(Vec<(String, RefOr<Schema>)>);

impl Schemas {
    fn read_members(&self, of: Parent, schema: &RefOr<Schema>, depth: usize, found: &mut Vec<Member>) {
        let RefOr::T(Schema::Object(object)) = schema else { return };
        if depth == 0 {
            return;
        }
        for (name, property) in &object.properties {
            let path = if of.path.is_empty() { name.clone() } else { format!("{}.{name}", of.path) };
            let presence = if object.required.contains(name) { of.presence } else { "sometimes" };
            let member = self.member(path.clone(), property, presence.to_owned());
            let inside = if member.kind.ends_with("null") {
                format!("if `{}` isn't null", last_of(&path))
            } else {
                member.presence.clone()
            };
            found.push(member);
            match self.resolve(property) {
                RefOr::T(Schema::Array(array)) => {
                    let of = Parent { path: &format!("{path}[]"), presence: "in every item" };
                    if let Some(item) = item_of(array) {
                        self.read_members(of, self.resolve(item), depth - 1, found);
                    }
                }
                schema => {
                    self.read_members(Parent { path: &path, presence: &inside }, schema, depth - 1, found);
                }
            }
        }
    }

    fn member(&self, path: String, property: &RefOr<Schema>, presence: String) -> Member {
        let (given, schema) = (plain(property), plain(self.resolve(property)));
        let choices = items(&given["oneOf"]);
        let can_be_null = choices.clone().chain([&given]).any(|choice| is_null(&choice["type"]));
        // The member's own description comes before that of its type.
        let mut described = [&given].into_iter().chain(choices).chain([&schema]);
        let description = described.find_map(|one| one["description"].as_str()).unwrap_or_default();
        Member {
            path,
            kind: format!("{}{}", self.kind(property), if can_be_null { " or null" } else { "" }),
            presence,
            description: description.replace('\n', " "),
            values: items(&schema["enum"]).filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    fn kind(&self, schema: &RefOr<Schema>) -> String {
        let schema = self.resolve(schema);
        if let RefOr::T(Schema::Array(array)) = schema {
            return format!("array of {}", item_of(array).map_or("any".to_owned(), |item| self.kind(item)));
        }
        let schema = plain(schema);
        let mut names = items(&schema["type"]).filter_map(Value::as_str).filter(|name| *name != "null");
        let name = schema["type"].as_str().or_else(|| names.next()).unwrap_or("any");
        match schema["format"].as_str().filter(|format| format.starts_with("date")) {
            Some(format) => format!("{name} ({format})"),
            None => name.to_owned(),
        }
    }

    /// The schema that a value has if it isn't null.
    fn resolve<'a>(&'a self, schema: &'a RefOr<Schema>) -> &'a RefOr<Schema> {
        match schema {
            RefOr::Ref(reference) => {
                let name = reference.ref_location.rsplit('/').next();
                let found = self.0.iter().find(|(known, _)| Some(known.as_str()) == name);
                found.map_or(schema, |(_, schema)| schema)
            }
            RefOr::T(Schema::OneOf(choices)) => {
                let choice = choices.items.iter().find(|choice| !is_null(&plain(choice)["type"]));
                choice.map_or(schema, |choice| self.resolve(choice))
            }
            RefOr::T(_) => schema,
        }
    }
}

fn last_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn item_of(array: &Array) -> Option<&RefOr<Schema>> {
    match &array.items {
        ArrayItems::RefOrSchema(item) => Some(item),
        ArrayItems::False => None,
    }
}

fn plain(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).expect("a schema is plain data")
}

fn is_null(kind: &Value) -> bool {
    kind == "null" || items(kind).any(|one| one == "null")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}
