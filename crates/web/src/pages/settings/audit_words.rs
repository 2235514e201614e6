//! Entries of the audit log in words.

use rapport_app::read::audit::AuditEntry;
use rapport_domain::audit::Action;
use rapport_domain::history::Actor;
use rapport_domain::member::Member;
use rapport_domain::time::Time;
use serde_json::{Map, Value};

/// How many characters of a value are shown.
const MAX_SHOWN: usize = 300;

/// The pages of changed things, by the prefix of the id.
const PLACES: [(&str, &str); 5] = [
    ("acc_", "/accounts/"),
    ("cmp_", "/campaigns/"),
    ("whk_", "/webhooks/"),
    ("dlv_", "/deliveries/"),
    ("imp_", "/imports/"),
];

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub at: Time,
    pub who: String,
    /// The kind of caller, if the name does not say it.
    pub kind: &'static str,
    pub what: String,
    pub target: Option<Target>,
    pub facts: Vec<Fact>,
    pub address: Option<String>,
    pub request_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub id: String,
    /// The name, if this is a person who is still a member.
    pub name: Option<String>,
    /// Its page, if it has one.
    pub href: Option<String>,
}

/// One changed or recorded member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub name: String,
    /// The old value, if it was changed.
    pub from: Option<String>,
    pub to: String,
}

impl Line {
    pub fn of(entry: AuditEntry, members: &[Member]) -> Self {
        let AuditEntry { actor, action, target, detail, at, address, request_id, .. } = entry;
        let (who, kind) = who(&actor);
        let what = Action::parse(&action).map_or_else(|| sentence(&action), |known| known.label().to_owned());
        let is_gone = action.ends_with(".deleted") || action.ends_with(".removed");
        // A person who changed themselves is already named as the actor.
        let is_own = |id: &String| matches!(&actor, Actor::Person { id: own, .. } if own.to_string() == *id);
        let target = target.filter(|id| !is_own(id)).map(|id| {
            let place = PLACES.iter().find(|(prefix, _)| id.starts_with(prefix) && !is_gone);
            let member = members.iter().find(|member| member.person.to_string() == id);
            let name = member.map(|member| member.name.clone());
            Target { href: place.map(|(_, path)| format!("{path}{id}")), name, id }
        });
        let detail: Map<String, Value> = serde_json::from_str(&detail).unwrap_or_default();
        let facts = detail.iter().map(|(name, value)| Fact::of(name, value)).collect();
        Self { at, who, kind, what, target, facts, address, request_id }
    }
}

impl Fact {
    fn of(name: &str, value: &Value) -> Self {
        let name = name.replace('_', " ");
        match value.as_object() {
            Some(change) if change.len() == 2 && change.contains_key("from") && change.contains_key("to") => {
                Self { name, from: Some(shown(&change["from"])), to: shown(&change["to"]) }
            }
            _ => Self { name, from: None, to: shown(value) },
        }
    }
}

fn who(actor: &Actor) -> (String, &'static str) {
    match actor {
        Actor::Person { name, .. } => (name.clone(), ""),
        Actor::Token { name, .. } => (name.clone(), "API token"),
        Actor::IngestKey { .. } => ("Ingest key".to_owned(), ""),
        Actor::InboundKey { .. } => ("Inbound key".to_owned(), ""),
        Actor::CommandLine => ("Command line".to_owned(), ""),
        Actor::System => ("Rapport".to_owned(), ""),
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(members) if members.is_empty() => "none".to_owned(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| match value {
                Value::Object(inner) if !inner.is_empty() => format!("{name} ({})", shown(value)),
                value => format!("{name}: {}", shown(value)),
            };
            members.iter().map(member).collect::<Vec<_>>().join("; ")
        }
        number @ Value::Number(_) => number.to_string(),
    };
    if text.chars().count() <= MAX_SHOWN {
        return text;
    }
    text.chars().take(MAX_SHOWN).chain(['…']).collect()
}

/// The text of a group, or of an action that this version does not know: `thing.was_done` becomes `Thing was done`.
pub fn sentence(action: &str) -> String {
    let words = action.replace(['.', '_'], " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::id::AuditId;
    use serde_json::json;

    fn line(action: &str, target: Option<&str>, detail: &Value) -> Line {
        let entry = AuditEntry {
            id: AuditId::from_bytes([0; 16]),
            actor: Actor::System,
            action: action.to_owned(),
            target: target.map(str::to_owned),
            detail: detail.to_string(),
            at: Time::from_micros(0),
            address: None,
            request_id: None,
        };
        Line::of(entry, &[])
    }

    #[test]
    fn a_change_says_what_was_and_what_is() {
        let detail = json!({
            "cadence_days": {"from": 42, "to": 30}, "digest_enabled": {"from": true, "to": false},
            "tracked_stages": {"from": ["customer", "in_trial"], "to": []}, "email": "ana@acme.test",
            "filters": {"fields": {"plan": ["pro", "team"]}, "status": []},
        });
        let line = line("settings.changed", None, &detail);
        let fact = |name: &str, from: Option<&str>, to: &str| Fact {
            name: name.to_owned(),
            from: from.map(str::to_owned),
            to: to.to_owned(),
        };
        assert_eq!(line.what, "Changed the settings");
        let mut facts = line.facts;
        facts.sort_by(|a, b| a.name.cmp(&b.name));
        let expected = [
            fact("cadence days", Some("42"), "30"),
            fact("digest enabled", Some("yes"), "no"),
            fact("email", None, "ana@acme.test"),
            fact("filters", None, "fields (plan: pro, team); status: none"),
            fact("tracked stages", Some("customer, in_trial"), "none"),
        ];
        assert_eq!(facts, expected);
    }

    #[test]
    fn what_was_changed_is_a_link_unless_it_is_gone() {
        let href = |action, id| line(action, Some(id), &json!({})).target.unwrap().href;
        assert_eq!(href("webhook.changed", "whk_1").as_deref(), Some("/webhooks/whk_1"));
        assert_eq!(href("webhook.deleted", "whk_1"), None);
        assert_eq!(href("member.changed", "per_1"), None);
        assert_eq!(line("thing.was_done", None, &json!({})).what, "Thing was done");
        assert_eq!(line("x", None, &json!({"a": "y".repeat(400)})).facts[0].to.chars().count(), 301);
    }
}
