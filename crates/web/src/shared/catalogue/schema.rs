//! The JSON Schema of a payload, for those who check what they receive.

use rapport_domain::event::Kind;
use serde_json::{Map, Value, json};

use super::{example, schema_path, when};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// The schema of a kind's payload, for a service that is reached at `base_url`. Members that it doesn't list are allowed,
/// because a later version may add some.
pub fn schema(kind: Kind, base_url: &str) -> Value {
    let (payload, named) = kind.payload_schema();
    let named = named.into_iter().map(|(name, schema)| (name, read(schema)));
    let mut schema = Map::from_iter([
        ("$schema".to_owned(), json!(DIALECT)),
        ("$id".to_owned(), json!(format!("{base_url}{}", schema_path(kind)))),
        ("title".to_owned(), json!(kind.as_str())),
        ("description".to_owned(), json!(when(kind))),
    ]);
    if let Value::Object(members) = read(payload) {
        for (name, value) in members {
            schema.entry(name).or_insert(value);
        }
    }
    schema.insert("examples".to_owned(), json!([example(kind)]));
    schema.insert("$defs".to_owned(), Value::Object(named.collect()));
    Value::Object(schema)
}

/// A schema as JSON Schema has it.
fn read(schema: impl serde::Serialize) -> Value {
    let mut schema = serde_json::to_value(schema).expect("a schema is plain data");
    adapt(&mut schema);
    schema
}

/// References lead to `$defs`, and the one `example` of OpenAPI becomes `examples`.
fn adapt(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(COMPONENTS)
            {
                *reference = format!("{DEFINITIONS}{name}");
            }
            if let Some(example) = members.remove("example") {
                members.insert("examples".to_owned(), json!([example]));
            }
            members.values_mut().for_each(adapt);
        }
        Value::Array(values) => values.iter_mut().for_each(adapt),
        _ => {}
    }
}
