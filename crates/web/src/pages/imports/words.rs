//! Imports in words: states, fields and sizes.

use rapport_domain::history::Actor;
use rapport_domain::import::reading::Delimiter;
use rapport_domain::import::{Import, State};
use rapport_domain::money::{Amount, Currency, Money};
use rapport_domain::pipeline::Status;
use serde_json::Value;

use crate::pages::words::money::money;

/// The fields that a column can be mapped to, with their labels. `CUSTOM` also needs a name.
pub const FIELDS: [(&str, &str); 12] = [
    ("imported_id", "Imported id"),
    ("name", "Name"),
    ("status", "Status"),
    ("promo_code", "Promo code"),
    ("captured_value", "Value"),
    ("captured_value_currency", "Currency"),
    ("emails", "Email addresses"),
    ("last_contact_at", "Last contact"),
    ("cadence_days", "Cadence"),
    ("snoozed_until", "Snoozed until"),
    (CUSTOM, "Custom field"),
    ("ignore", "Ignore this column"),
];
pub const CUSTOM: &str = "custom";
const CUSTOM_PREFIX: &str = "custom_fields.";

/// Common encodings of spreadsheet exports. The API accepts others.
pub const ENCODINGS: [(&str, &str); 9] = [
    ("UTF-8", "UTF-8"),
    ("windows-1252", "Windows-1252 (Western European)"),
    ("windows-1250", "Windows-1250 (Central European)"),
    ("windows-1251", "Windows-1251 (Cyrillic)"),
    ("macintosh", "Macintosh"),
    ("UTF-16LE", "UTF-16"),
    ("Shift_JIS", "Shift JIS (Japanese)"),
    ("GBK", "GBK (Chinese)"),
    ("EUC-KR", "EUC-KR (Korean)"),
];

pub const DELIMITERS: [(&str, &str); 4] =
    [(",", "Comma"), (";", "Semicolon"), ("tab", "Tab"), ("|", "Vertical bar")];

/// The steps of the wizard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Step {
    Upload,
    Columns,
    DryRun,
    Run,
    Result,
}

impl Step {
    pub const ALL: [Self; 5] = [Self::Upload, Self::Columns, Self::DryRun, Self::Run, Self::Result];

    pub fn of(import: &Import) -> Self {
        match import.state {
            State::Uploading => Self::Upload,
            State::Uploaded if import.preview.is_none() => Self::Columns,
            State::Uploaded | State::Previewing => Self::DryRun,
            State::Running => Self::Run,
            State::Finished | State::Cancelled | State::Undoing | State::Undone => Self::Result,
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::Upload => "Upload",
            Self::Columns => "Columns",
            Self::DryRun => "Dry run",
            Self::Run => "Import",
            Self::Result => "Result",
        }
    }
}

/// The label and the class of the badge of an import.
pub fn state(import: &Import) -> (&'static str, &'static str) {
    match import.state {
        State::Uploading => ("Uploading", "warn"),
        State::Uploaded if import.preview.is_none() => ("Uploaded", ""),
        State::Uploaded => ("Dry run done", ""),
        State::Previewing => ("Dry run", "warn"),
        State::Running => ("Running", "warn"),
        State::Finished => ("Finished", "good"),
        State::Cancelled => ("Cancelled", "bad"),
        State::Undoing => ("Undoing", "warn"),
        State::Undone => ("Undone", ""),
    }
}

pub fn actor(actor: &Actor) -> &str {
    match actor {
        Actor::Person { name, .. } | Actor::Token { name, .. } => name,
        Actor::CommandLine => "command line",
        Actor::IngestKey { .. } | Actor::InboundKey { .. } | Actor::System => "the service",
    }
}

pub fn delimiter(delimiter: Delimiter) -> String {
    let text = delimiter.text();
    let known = DELIMITERS.into_iter().find(|(value, _)| *value == delimiter_value(delimiter));
    known.map_or(text, |(_, label)| label.to_lowercase())
}

/// The value of the form field.
pub fn delimiter_value(delimiter: Delimiter) -> String {
    let text = delimiter.text();
    if text == "\t" { "tab".to_owned() } else { text }
}

/// The label of a changed field.
pub fn field(name: &str) -> String {
    match FIELDS.iter().find(|(word, _)| *word == name) {
        Some((_, label)) => (*label).to_owned(),
        None => name.strip_prefix(CUSTOM_PREFIX).unwrap_or(name).to_owned(),
    }
}

/// The value of a field as text.
pub fn value(field: &str, value: &Value) -> String {
    match value {
        Value::Null => "—".to_owned(),
        Value::String(text) if field == "status" => {
            Status::parse(text).map_or_else(|_| text.clone(), |status| status.label().to_owned())
        }
        Value::String(text) if field == "captured_value" => {
            read_money(text).as_ref().map_or_else(|| text.clone(), money)
        }
        Value::String(text) if field == "last_contact_at" => text.get(..10).unwrap_or(text).to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(texts) if field == "emails" => {
            texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Parses money as a dry run writes it: `47700.00 EUR`.
fn read_money(text: &str) -> Option<Money> {
    let (amount, currency) = text.split_once(' ')?;
    Some(Money { amount: Amount::parse(amount).ok()?, currency: Currency::parse(currency).ok()? })
}

/// `12 KB`, `1.5 MB`, `1 GB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KB", "MB", "GB"];
    let (mut whole, mut tenths, mut unit) = (count, 0, 0);
    while whole >= 1024 && unit < UNITS.len() - 1 {
        tenths = whole % 1024 * 10 / 1024;
        whole /= 1024;
        unit += 1;
    }
    if tenths > 0 && whole < 10 {
        format!("{whole}.{tenths} {}", UNITS[unit])
    } else {
        format!("{whole} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::import::charset::Charset;
    use rapport_domain::import::mapping::Target;
    use serde_json::json;

    #[test]
    fn the_words_are_the_interfaces() {
        for (word, _) in FIELDS.into_iter().filter(|(word, _)| *word != CUSTOM) {
            assert_eq!(Target::parse(word).unwrap().as_text(), word);
        }
        let every = Target::parse("?").unwrap_err().detail;
        assert_eq!(every.matches(',').count() + 1, FIELDS.len(), "{every}");
        for (name, _) in ENCODINGS {
            assert_eq!(Charset::parse(name).unwrap().name(), name);
        }
        for (value, label) in DELIMITERS {
            assert_eq!(delimiter(Delimiter::parse(value).unwrap()), label.to_lowercase());
        }
        assert_eq!(delimiter(Delimiter::parse("~").unwrap()), "~");
    }

    #[test]
    fn values_and_sizes_are_short_texts() {
        assert_eq!(value("status", &json!("in_trial")), Status::InTrial.label());
        assert_eq!(value("custom_fields.seats", &json!(7)), "7");
        assert_eq!(value("name", &Value::Null), "—");
        assert_eq!(value("captured_value", &json!("47700.00 EUR")), "€47,700.00");
        assert_eq!(value("emails", &json!(["a@x.de", "b@x.de"])), "a@x.de, b@x.de");
        assert_eq!(value("last_contact_at", &json!("2026-05-12T08:30:00Z")), "2026-05-12");
        let table =
            [(0, "0 bytes"), (2_048, "2 KB"), (1_600, "1.5 KB"), (55 << 20, "55 MB"), (1 << 30, "1 GB")];
        for (count, expected) in table {
            assert_eq!(bytes(count), expected);
        }
    }
}
