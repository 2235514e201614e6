//! The catalogue is complete, and docs/events.md is made from it.

use std::fmt::Write as _;
use std::{env, fs};

use jsonschema::Draft;
use rapport_domain::pipeline::{Source, Status};
use serde_json::json;

use super::*;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
/// Set it to write the document instead of comparing it.
const WRITE: &str = "RAPPORT_WRITE_DOCS";

const INTRODUCTION: &str = "\
# Events

Every event that webhooks deliver, with every member of its payload. [receiving-webhooks.md](receiving-webhooks.md) says how
to receive them. The page Webhooks → Events shows the same, and so does the `webhooks` section of `/api/openapi.json`.

Every payload has a JSON Schema, which needs no login: `/api/schemas/events/account.created.json` and so on;
`/api/schemas/events/` lists them. Its `$id` is its address. Schemas allow members that they don't list: ignore members that
you don't know, because later versions may add some ([versioning.md](versioning.md)).

A member without a value is `null`, not missing. Times are RFC 3339 in UTC.

This page is generated from the types that payloads are made of, and the examples are payloads that a test has made with the
real service (`RAPPORT_WRITE_DOCS=1 cargo test -p rapport-web catalogue` writes both).
";

fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for entry in entries() {
        let Entry { kind, when, members, example, .. } = entry;
        let _ = write!(text, "\n## {}\n\n{when}\n\n", kind.as_str());
        text.push_str("| Member | Type | Present | Meaning |\n|---|---|---|---|\n");
        for member in members {
            let Member { path, kind, presence, description, values } = member;
            let words: Vec<String> = values.iter().map(|word| format!("`{word}`")).collect();
            let words = match &words[..] {
                [] => String::new(),
                [word] => format!(" Always {word}."),
                words => format!(" One of {}.", words.join(", ")),
            };
            let _ = writeln!(text, "| `{path}` | {kind} | {presence} | {description}{words} |");
        }
        let _ = write!(text, "\n[Example]({}):\n\n```json\n{example}```\n", example_file(*kind));
    }
    text
}

fn example_file(kind: Kind) -> String {
    format!("events/{}.json", kind.as_str())
}

#[test]
fn the_document_is_made_from_the_catalogue() {
    let made = document();
    if env::var_os(WRITE).is_some() {
        fs::write(DOCUMENT, &made).expect("written");
    }
    let found = fs::read_to_string(DOCUMENT).expect("docs/events.md");
    assert!(found == made, "docs/events.md is out of date: run this test with {WRITE}=1");
}

#[test]
fn every_member_says_what_it_is() {
    for Entry { kind, members, .. } in entries() {
        assert!(members.len() > 20, "{}: {}", kind.as_str(), members.len());
        for Member { path, kind: its, description, .. } in members {
            assert!(!description.is_empty(), "{} {path} has no description", kind.as_str());
            assert!(its != "any", "{} {path} has no type", kind.as_str());
        }
    }
}

#[test]
fn members_have_their_type_values_and_order() {
    let members = Entry::of(Kind::AccountStatusChanged).members;
    let paths: Vec<&str> = members.iter().map(|member| member.path.as_str()).collect();
    assert_eq!(paths[..6], ["id", "type", "created_at", "project", "data", "data.account"]);
    let of = |path: &str| members.iter().find(|member| member.path == path).expect(path);
    let table = [
        ("id", "string"),
        ("created_at", "string (date-time)"),
        ("data", "object"),
        ("data.account.imported_id", "string or null"),
        ("data.account.channel", "object or null"),
        ("data.account.last_seen_at", "string (date-time) or null"),
        ("data.account.custom_fields", "object"),
    ];
    for (path, kind) in table {
        assert_eq!((of(path).kind.as_str(), of(path).presence.as_str()), (kind, "always"), "{path}");
    }
    let name = of("data.account.channel.name");
    assert_eq!((name.kind.as_str(), name.presence.as_str()), ("string", "if `channel` isn't null"));
    assert_eq!(of("type").values, ["account.status_changed"]);
    assert_eq!(of("data.status").values, Status::ALL.map(Status::as_str));
    assert_eq!(of("data.previous_status").description, "The status that it left.", "its own words");
    let members = Entry::of(Kind::MessageInbound).members;
    let of = |path: &str| members.iter().find(|member| member.path == path).expect(path);
    assert_eq!(of("data.message.attachments").kind, "array of object");
    let size = of("data.message.attachments[].size");
    assert_eq!((size.kind.as_str(), size.presence.as_str()), ("integer", "in every item"));
}

#[test]
fn when_names_every_source_that_exists() {
    let sources = |kind| {
        Source::ALL
            .map(Source::as_str)
            .into_iter()
            .filter(move |word| when(kind).contains(&format!("`{word}`")))
    };
    let created: Vec<&str> = sources(Kind::AccountCreated).collect();
    assert_eq!(created, ["operator", "upsert", "import", "lookup", "inbound"]);
    let moved: Vec<&str> = sources(Kind::AccountStatusChanged).collect();
    assert_eq!(moved, ["operator", "upsert", "import", "automation"]);
}

#[test]
fn schemas_stand_alone_and_describe_their_examples() {
    for kind in Kind::ALL {
        let schema = schema(kind, "https://rapport.example");
        let id = format!("https://rapport.example/api/schemas/events/{}.json", kind.as_str());
        assert_eq!(schema["$id"], json!(id));
        let text = schema.to_string();
        assert!(!text.contains("#/components/") && !text.contains("\"example\":"), "{text}");
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        let validator = options.build(&schema).unwrap_or_else(|error| panic!("{}: {error}", kind.as_str()));
        let example = example(kind);
        let errors: Vec<String> = validator.iter_errors(&example).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", kind.as_str());
        let mut changed = example.clone();
        changed["data"]["account"]["status"] = json!("gone");
        assert!(!validator.is_valid(&changed), "{}: an unknown status", kind.as_str());
        changed = example;
        changed["new"] = json!(1);
        assert!(validator.is_valid(&changed), "{}: later versions may add members", kind.as_str());
    }
}
