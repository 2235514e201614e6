//! Which column is which field of an account: guessed from the names, chosen by a person, and remembered.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use super::Mode;
use crate::custom_fields::MAX_KEY;
use crate::invalid::{Fault, FieldError, Invalid, as_str};
use crate::text::fold;

const FIELD_PREFIX: &str = "custom_fields.";

/// The account field that a column is imported into.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    ImportedId,
    Name,
    Status,
    PromoCode,
    Value,
    Currency,
    /// One or several in a cell.
    Emails,
    LastContact,
    CadenceDays,
    SnoozedUntil,
    Field(String),
    Ignore,
}

/// The names of the targets, besides `custom_fields.KEY`, and the column names they are guessed from: letters
/// and digits only, in lower case.
const WORDS: [(&str, Target, &[&str]); 11] = [
    (
        "imported_id",
        Target::ImportedId,
        &[
            "importedid",
            "externalid",
            "id",
            "recordid",
            "accountid",
            "customerid",
            "companyid",
            "crmid",
            "leadid",
            "clientid",
            "hubspotid",
            "salesforceid",
            "uid",
            "kundennummer",
            "kundennr",
            "kundenid",
            "debitorennummer",
            "debitor",
        ],
    ),
    (
        "name",
        Target::Name,
        &[
            "name",
            "accountname",
            "account",
            "companyname",
            "company",
            "customername",
            "customer",
            "clientname",
            "client",
            "organisation",
            "organization",
            "organisationname",
            "organizationname",
            "businessname",
            "firma",
            "firmenname",
            "unternehmen",
            "kunde",
            "kundenname",
        ],
    ),
    (
        "status",
        Target::Status,
        &[
            "status",
            "stage",
            "pipelinestage",
            "pipelinestatus",
            "accountstatus",
            "leadstatus",
            "dealstage",
            "lifecyclestage",
            "phase",
            "stufe",
            "vertriebsphase",
            "kundenstatus",
        ],
    ),
    (
        "promo_code",
        Target::PromoCode,
        &[
            "promocode",
            "promo",
            "coupon",
            "couponcode",
            "discountcode",
            "referralcode",
            "gutschein",
            "gutscheincode",
            "aktionscode",
            "rabattcode",
        ],
    ),
    (
        "captured_value",
        Target::Value,
        &[
            "capturedvalue",
            "value",
            "accountvalue",
            "amount",
            "dealvalue",
            "dealamount",
            "contractvalue",
            "revenue",
            "mrr",
            "arr",
            "wert",
            "betrag",
            "umsatz",
            "jahresumsatz",
            "auftragswert",
            "vertragswert",
        ],
    ),
    (
        "captured_value_currency",
        Target::Currency,
        &["capturedvaluecurrency", "valuecurrency", "currency", "currencycode", "währung", "waehrung"],
    ),
    (
        "emails",
        Target::Emails,
        &[
            "emails",
            "email",
            "emailaddress",
            "emailaddresses",
            "mail",
            "contactemail",
            "emailadresse",
            "emailadressen",
            "mailadresse",
        ],
    ),
    (
        "last_contact_at",
        Target::LastContact,
        &[
            "lastcontactat",
            "lastcontact",
            "lastcontacted",
            "lastcontactdate",
            "datelastcontacted",
            "letzterkontakt",
            "letzterkontaktam",
            "letztekontaktaufnahme",
        ],
    ),
    (
        "cadence_days",
        Target::CadenceDays,
        &[
            "cadencedays",
            "cadence",
            "contacteverydays",
            "contactevery",
            "kontaktalle",
            "kontaktalletage",
            "kontaktrhythmus",
            "kontaktintervall",
            "turnus",
        ],
    ),
    (
        "snoozed_until",
        Target::SnoozedUntil,
        &["snoozeduntil", "snoozeuntil", "snooze", "wiedervorlage", "wiedervorlageam", "wiedervorlagedatum"],
    ),
    ("ignore", Target::Ignore, &[IMPORT_LINE_WORD, IMPORT_ERROR_WORD]),
];

/// The columns of our own error file, which can be corrected and imported again.
pub const LINE_COLUMN: &str = "import_line";
pub const ERROR_COLUMN: &str = "import_error";
const IMPORT_LINE_WORD: &str = "importline";
const IMPORT_ERROR_WORD: &str = "importerror";

impl Target {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if let Some(key) = text.strip_prefix(FIELD_PREFIX) {
            MAX_KEY.check(key)?;
            return Ok(Self::Field(key.to_owned()));
        }
        let found = WORDS.iter().find(|(word, ..)| *word == text);
        found.map(|(_, target, _)| target.clone()).ok_or_else(|| {
            let words = WORDS.iter().map(|(word, ..)| *word);
            Fault::not_one_of("unknown_field", words.chain(["custom_fields.KEY"]))
        })
    }

    pub fn as_text(&self) -> String {
        match self {
            Self::Field(key) => format!("{FIELD_PREFIX}{key}"),
            other => {
                WORDS.iter().find(|(_, target, _)| target == other).map_or("", |(word, ..)| word).to_owned()
            }
        }
    }

    /// The most likely field for a column with this name: one of ours, else a custom field of that name.
    fn guess(name: &str) -> Self {
        if let Ok(exact) = Self::parse(name.trim()) {
            return exact;
        }
        let plain: String = fold(name).chars().filter(|character| character.is_alphanumeric()).collect();
        let known = WORDS.iter().find(|(.., names)| names.contains(&plain.as_str()));
        known.map_or_else(|| Self::custom(name), |(_, target, _)| target.clone())
    }

    fn custom(name: &str) -> Self {
        let folded = fold(name);
        let words: Vec<&str> = folded
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let key: String = words.join("_").chars().take(MAX_KEY.max).collect();
        if key.is_empty() { Self::Ignore } else { Self::Field(key) }
    }
}

/// One target for each column, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping(pub Vec<Target>);

impl Mapping {
    pub fn guess<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        let mut taken = HashSet::new();
        let mut one = |name: &str| {
            let guessed = [Target::guess(name), Target::custom(name)];
            let free = guessed.into_iter().find(|target| !taken.contains(target));
            let target = free.unwrap_or(Target::Ignore);
            if target != Target::Ignore {
                taken.insert(target.clone());
            }
            target
        };
        Self(columns.into_iter().map(&mut one).collect())
    }

    /// Reads `{"column": "field", …}`; columns that aren't listed are ignored.
    pub fn parse(sent: &Map<String, Value>, columns: &[&str]) -> Result<Self, Invalid> {
        let mut targets = vec![Target::Ignore; columns.len()];
        let mut taken = HashSet::new();
        let mut errors = Vec::new();
        for (name, value) in sent {
            let parsed = as_str(value).and_then(Target::parse).and_then(|target| {
                let place = columns.iter().position(|column| column == name);
                let place =
                    place.ok_or_else(|| Fault::new("unknown_column", "is not a column of the file"))?;
                if target != Target::Ignore && !taken.insert(target.clone()) {
                    return Err(Fault::new("repeated", "another column is already mapped to this field"));
                }
                Ok((place, target))
            });
            match parsed {
                Ok((place, target)) => targets[place] = target,
                Err(Fault { code, detail }) => {
                    let pointer = format!("/mapping/{}", name.replace('~', "~0").replace('/', "~1"));
                    errors.push(FieldError { pointer, code, detail });
                }
            }
        }
        if errors.is_empty() { Ok(Self(targets)) } else { Err(Invalid(errors)) }
    }

    /// The form that `parse` reads, including ignored columns.
    pub fn to_json(&self, columns: &[&str]) -> Map<String, Value> {
        let pairs = columns.iter().zip(&self.0);
        pairs.map(|(name, target)| ((*name).to_owned(), target.as_text().into())).collect()
    }

    pub fn has(&self, target: &Target) -> bool {
        self.0.contains(target)
    }

    /// Checks that the mapping is enough to import rows.
    pub fn check(&self, mode: Mode) -> Result<(), Invalid> {
        let (by_id, by_name) = (self.has(&Target::ImportedId), self.has(&Target::Name));
        let missing = |detail: &str| Err(Invalid::one("/mapping", "incomplete", detail));
        match mode {
            Mode::Update if !by_id => missing("must include imported_id, which rows are matched by"),
            Mode::Create | Mode::Both if !by_id && !by_name => missing("must include imported_id or name"),
            Mode::Create | Mode::Update | Mode::Both => Ok(()),
        }
    }
}

/// The hash that a company's mappings are remembered by: the column names, in any order and case.
pub fn columns_mark<'a>(columns: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut names: Vec<String> = columns.into_iter().map(fold).collect();
    names.sort_unstable();
    let mut mark = [0; 32];
    mark.copy_from_slice(digest(&SHA256, names.join("\0").as_bytes()).as_ref());
    mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn guessed(columns: &[&str]) -> Vec<String> {
        Mapping::guess(columns.iter().copied()).0.iter().map(Target::as_text).collect()
    }

    #[test]
    fn columns_are_guessed_by_their_names() {
        let table = [
            ("External ID", "imported_id"),
            ("imported_id", "imported_id"),
            ("COMPANY NAME", "name"),
            ("Lead-Status", "status"),
            ("promo code", "promo_code"),
            ("Deal value", "captured_value"),
            ("Currency", "captured_value_currency"),
            ("Cadence (days)", "cadence_days"),
            ("E-Mail", "emails"),
            ("Email addresses", "emails"),
            ("Last contact", "last_contact_at"),
            ("Letzter Kontakt", "last_contact_at"),
            ("Snoozed until", "snoozed_until"),
            ("Wiedervorlage", "snoozed_until"),
            ("Kontakt alle", "cadence_days"),
            ("Kundennr.", "imported_id"),
            ("Währung", "captured_value_currency"),
            ("custom_fields.Plan B", "custom_fields.Plan B"),
            ("Number of seats", "custom_fields.number_of_seats"),
            ("Straße", "custom_fields.straße"),
            ("---", "ignore"),
            ("import_error", "ignore"),
        ];
        for (column, target) in table {
            assert_eq!(guessed(&[column]), [target], "{column}");
        }
    }

    #[test]
    fn no_field_is_guessed_twice() {
        assert_eq!(
            guessed(&["id", "Record ID", "Name", "Name (2)", "record_id"]),
            ["imported_id", "custom_fields.record_id", "name", "custom_fields.name_2", "ignore"]
        );
    }

    #[test]
    fn a_mapping_is_read_with_every_fault() {
        let columns = ["id", "a/b", "c"];
        let read = |sent: Value| Mapping::parse(sent.as_object().unwrap(), &columns);
        let mapping = read(json!({"id": "imported_id", "c": "custom_fields.plan"})).unwrap();
        assert_eq!(mapping.0, [Target::ImportedId, Target::Ignore, Target::Field("plan".into())]);
        assert_eq!(
            Value::Object(mapping.to_json(&columns)),
            json!({"id": "imported_id", "a/b": "ignore", "c": "custom_fields.plan"})
        );
        let faults = read(json!({"a/b": "nope", "c": 1, "x": "name"})).unwrap_err().0;
        let mut found: Vec<(&str, &str)> =
            faults.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("/mapping/a~1b", "unknown_field"),
                ("/mapping/c", "wrong_type"),
                ("/mapping/x", "unknown_column"),
            ]
        );
        assert_eq!(read(json!({"id": "name", "c": "name"})).unwrap_err().0[0].code, "repeated");
        assert!(read(json!({"id": "ignore", "c": "ignore"})).is_ok());
    }

    #[test]
    fn a_mode_asks_for_what_it_needs() {
        let by_id = Mapping(vec![Target::ImportedId]);
        let by_name = Mapping(vec![Target::Name]);
        let neither = Mapping(vec![Target::Status]);
        for mode in Mode::ALL {
            assert!(by_id.check(mode).is_ok());
            assert_eq!(by_name.check(mode).is_ok(), mode != Mode::Update, "{mode:?}");
            assert!(neither.check(mode).is_err());
        }
    }

    #[test]
    fn columns_are_remembered_in_any_order_and_case() {
        assert_eq!(columns_mark(["Id", "name"]), columns_mark(["NAME", "id"]));
        assert_ne!(columns_mark(["id", "name"]), columns_mark(["idname"]));
    }
}
