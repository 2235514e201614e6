//! A form as it is shown: what stands in its fields, and what is wrong with what was typed.

use std::collections::BTreeMap;

use rapport_app::Error;

use crate::pages::form::{FORM, Form};

/// The fields of a form that is shown, for the first time or again with what was typed.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    values: Vec<(String, String)>,
    errors: BTreeMap<String, String>,
    /// What is wrong with the whole of it.
    pub error: Option<String>,
}

impl Draft {
    /// A form with these values in it.
    pub fn new<'a>(values: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { values, errors: BTreeMap::new(), error: None }
    }

    /// A form that was refused: what was typed stays, and each fault stands beside its field. Whatever is no fault of
    /// the form is handed back.
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
            Error::Conflict { detail, .. } | Error::Forbidden { detail, .. } => {
                draft.error = Some(sentence(&detail));
            }
            other => return Err(other),
        }
        Ok(draft)
    }

    /// What stands in a field.
    pub fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether a box of this name and value is ticked, or an option chosen.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.values.iter().any(|(key, held)| key == name && held == value)
    }

    /// What is wrong with a field; empty where nothing is.
    pub fn fault(&self, name: &str) -> &str {
        self.errors.get(name).map_or("", String::as_str)
    }

    pub fn has_faults(&self) -> bool {
        self.error.is_some() || !self.errors.is_empty()
    }

    /// The faults of the whole, and of fields that the page does not show; `shown` has the names of the others.
    pub fn other_faults(&self, shown: &str) -> Vec<String> {
        let hidden = self.errors.iter().filter(|(name, _)| !shown.split(' ').any(|one| one == *name));
        let hidden = hidden
            .map(|(name, fault)| if name.is_empty() { fault.clone() } else { format!("{name}: {fault}") });
        self.error.iter().cloned().chain(hidden).collect()
    }
}

/// Details are written to follow a field's name; beside a field they stand alone.
pub fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
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
        assert_eq!(draft.other_faults(""), ["name: Must be shorter."]);
        assert!(Draft::refused(&form, Error::Busy).is_err());
    }
}
