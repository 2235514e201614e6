//! The filter of the log, in the address and in the form. Its names are those of the API.

use rapport_domain::delivery_list::{Filter, Shown};
use serde_json::{Map, Value};

use crate::pages::kit::form::Form;

const NAMES: [&str; 6] = ["webhook", "type", "state", "account", "since", "until"];

/// The filter as it was typed.
pub fn typed(form: &Form) -> Map<String, Value> {
    let given = NAMES.into_iter().filter_map(|name| form.given(name).map(|text| (name, text)));
    given.map(|(name, text)| (name.to_owned(), Value::from(text))).collect()
}

/// The filter as fields in canonical form, however it was typed.
pub fn fields(filter: &Filter) -> Vec<(&'static str, String)> {
    let values = [
        filter.webhook.map(|id| id.to_string()),
        filter.kind.map(|kind| kind.as_str().to_owned()),
        filter.state.map(|state| state.as_str().to_owned()),
        filter.account.map(|id| id.to_string()),
        filter.since.map(|time| time.to_string()),
        filter.until.map(|time| time.to_string()),
    ];
    NAMES.into_iter().zip(values).filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}

/// The filter as a query string, followed by more fields.
pub fn query(filter: &Filter, more: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields(filter)).extend_pairs(more);
    query.finish()
}

/// `Held`.
pub const fn state_name(state: Shown) -> &'static str {
    match state {
        Shown::Pending => "Pending",
        Shown::Succeeded => "Succeeded",
        Shown::Failed => "Failed",
        Shown::Held => "Held",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::event::Kind;
    use rapport_domain::time::Time;

    #[test]
    fn a_filter_is_written_as_the_api_reads_it() {
        let filter = Filter {
            state: Some(Shown::Failed),
            kind: Some(Kind::AccountCreated),
            since: Time::parse("2026-11-15T08:30:00Z").ok(),
            ..Filter::default()
        };
        let expected = "type=account.created&state=failed&since=2026-11-15T08%3A30%3A00Z&before=x";
        assert_eq!(query(&filter, &[("before", "x")]), expected);
    }
}
