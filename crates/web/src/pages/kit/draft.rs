//! A form on a page: the values of its fields, and their faults.

use std::collections::BTreeMap;

use rapport_app::Error;

use crate::pages::kit::form::{FORM, Form};
use crate::shared::sentence;

/// The conflicts that are the fault of one field.
const CONFLICTS: [(&str, &str); 4] = [
    ("name_taken", "name"),
    ("code_taken", "code"),
    ("imported_id_taken", "imported_id"),
    ("rate_taken", "valid_from"),
];

/// The fields of a form, shown for the first time or again with what was typed.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    values: Vec<(String, String)>,
    errors: BTreeMap<String, String>,
    /// A fault of the form as a whole.
    pub error: Option<String>,
}

impl Draft {
    /// A form with these values.
    pub fn new<'a>(values: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { values, errors: BTreeMap::new(), error: None }
    }

    /// A form that was refused. It keeps what was typed and shows each fault beside its field. An error that is not a
    /// fault of the form is returned.
    pub fn refused(form: &Form, error: Error) -> Result<Self, Error> {
        let values = form.fields().filter(|(name, _)| *name != FORM);
        let mut draft = Self::new(values.map(|(name, value)| (name, value.to_owned())));
        match error {
            Error::Invalid(invalid) => {
                for fault in invalid.0 {
                    let field =
                        fault.pointer.trim_start_matches('/').split('/').next().unwrap_or("").to_owned();
                    draft.errors.entry(field).or_insert(sentence(&fault.detail));
                }
            }
            Error::Conflict { code, detail } => {
                let field = CONFLICTS.iter().find(|(conflict, _)| *conflict == code).map(|(_, field)| *field);
                match field.filter(|field| form.is_ticked(field)) {
                    Some(field) => drop(draft.errors.insert(field.to_owned(), sentence(&detail))),
                    None => draft.error = Some(sentence(&detail)),
                }
            }
            Error::TooMany { detail, .. } => draft.error = Some(sentence(&detail)),
            other => return Err(other),
        }
        Ok(draft)
    }

    /// The value of a field.
    pub fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether a box is ticked or an option selected.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.values.iter().any(|(key, held)| key == name && held == value)
    }

    /// The fault of a field, or an empty text.
    pub fn fault(&self, name: &str) -> &str {
        self.errors.get(name).map_or("", String::as_str)
    }

    pub fn has_faults(&self) -> bool {
        self.error.is_some() || !self.errors.is_empty()
    }

    /// The faults of the form as a whole and of fields that are not in `shown`, the names of the fields on the page.
    pub fn other_faults(&self, shown: &str) -> Vec<String> {
        let hidden = self.errors.iter().filter(|(name, _)| !shown.split_whitespace().any(|one| one == *name));
        let hidden = hidden.map(|(name, fault)| about(name, fault));
        self.error.iter().cloned().chain(hidden).collect()
    }
}

/// A fault as a sentence about its field, for a place where the field isn't shown.
fn about(name: &str, fault: &str) -> String {
    if name.is_empty() {
        return fault.to_owned();
    }
    let mut letters = fault.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    sentence(&format!("{} {first}{}", name.replace('_', " "), letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::invalid::Invalid;

    #[test]
    fn what_was_typed_stays_and_faults_stand_beside_their_fields() {
        let form = Form::parse(b"form=x&name=Ana&stage=a&stage=b");
        let error = Invalid::one("/name/0", "too_long", "must be shorter").into();
        let draft = Draft::refused(&form, error).unwrap();
        assert_eq!((draft.value("name"), draft.fault("name")), ("Ana", "Must be shorter."));
        assert_eq!((draft.value("other"), draft.fault("other"), draft.value("form")), ("", "", ""));
        assert!(draft.has("stage", "b") && !draft.has("stage", "c"));
        assert_eq!(draft.other_faults("name"), [""; 0]);
        assert_eq!(draft.other_faults(""), ["Name must be shorter."]);
        assert!(Draft::refused(&form, Error::Busy).is_err());
    }

    #[test]
    fn a_conflict_stands_beside_its_field_or_above_the_form() {
        let conflict = |code| Error::Conflict { code, detail: "is already used".to_owned() };
        let faults = |form: &[u8], code| {
            let draft = Draft::refused(&Form::parse(form), conflict(code)).unwrap();
            (draft.fault("name").to_owned(), draft.error)
        };
        let sentence = "Is already used.".to_owned();
        assert_eq!(faults(b"name=Ana", "name_taken"), (sentence.clone(), None));
        assert_eq!(faults(b"other=1", "name_taken"), (String::new(), Some(sentence.clone())));
        assert_eq!(faults(b"name=Ana", "in_use"), (String::new(), Some(sentence)));
        let too_many = Error::too_many("too_many_mails", "wait an hour", 3_600);
        let draft = Draft::refused(&Form::parse(b"name=Ana"), too_many).unwrap();
        assert_eq!((draft.value("name"), draft.error.as_deref()), ("Ana", Some("Wait an hour.")));
    }
}
