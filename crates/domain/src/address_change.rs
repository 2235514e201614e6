//! A person's new email address: how long its link is valid, and the request for one.

use serde_json::{Map, Value};

use crate::invalid::{Invalid, Members};
use crate::member::Email;

/// How long the link that goes to the new address can be used.
pub const CHANGE_SECONDS: i64 = 60 * 60;
/// How many links a person may request while one is valid.
pub const MAX_CHANGES: i64 = 3;
/// The page that the link in the mail points to; the secret is the next path segment.
pub const CHANGE_PATH: &str = "/email-change/";

/// Parses a request for a change: the new address.
pub fn parse(body: &Map<String, Value>) -> Result<Email, Invalid> {
    let mut members = Members::of(body);
    let email = members.required("email", Email::from_json);
    members.refuse_unknown();
    members.build(|| email)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_names_an_address() {
        let parsed = |body: Value| parse(body.as_object().unwrap()).map_err(|invalid| invalid.0[0].code);
        let table = [
            (json!({"email": "Ana@new.test"}), Ok(Email::parse("ana@new.test").unwrap())),
            (json!({}), Err("required")),
            (json!({"email": "ana"}), Err("malformed")),
            (json!({"email": "ana@new.test", "name": "Ana"}), Err("unknown_member")),
        ];
        for (body, expected) in table {
            assert_eq!(parsed(body.clone()), expected, "{body}");
        }
    }
}
