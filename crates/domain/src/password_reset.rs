//! Password resets: how long they are valid, their link, and the requests for one and with one.

use serde_json::{Map, Value};

use crate::invalid::{Invalid, Members, as_str};
use crate::member::Email;
use crate::password::new_password;

/// How long a password reset can be used.
pub const RESET_SECONDS: i64 = 60 * 60;
/// How many resets a person may request while one is valid.
pub const MAX_RESETS: i64 = 3;
/// The page that the link in the mail points to; the secret is the next path segment.
pub const RESET_PATH: &str = "/password-reset/";

/// Parses a request for a reset: the address of the person who forgot the password.
pub fn parse_email(body: &Map<String, Value>) -> Result<Email, Invalid> {
    let mut members = Members::of(body);
    let email = members.required("email", Email::from_json);
    members.refuse_unknown();
    members.build(|| email)
}

/// A request to set a new password.
pub struct Confirmation {
    pub token: String,
    pub password: String,
}

impl Confirmation {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let token = members.required("token", |value| as_str(value).map(str::to_owned));
        let password = members.required("password", new_password);
        members.refuse_unknown();
        members.build(|| Some(Self { token: token?, password: password? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reset_is_requested_by_address() {
        let parse = |body: Value| parse_email(body.as_object().unwrap()).map_err(|invalid| invalid.0[0].code);
        let table = [
            (json!({"email": "Ana@acme.test"}), Ok(Email::parse("ana@acme.test").unwrap())),
            (json!({}), Err("required")),
            (json!({"email": "ana"}), Err("malformed")),
            (json!({"email": "ana@acme.test", "name": "Ana"}), Err("unknown_member")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }

    #[test]
    fn a_new_password_follows_the_rules() {
        let parse = |body: Value| {
            let parsed = Confirmation::parse(body.as_object().unwrap());
            parsed.map(|sent| (sent.token, sent.password)).map_err(|invalid| invalid.0[0].code)
        };
        let table = [
            (
                json!({"token": "rpw_x", "password": "ten chars!"}),
                Ok(("rpw_x".to_owned(), "ten chars!".to_owned())),
            ),
            (json!({"token": "rpw_x", "password": "nine char"}), Err("too_short")),
            (json!({"token": "rpw_x"}), Err("required")),
            (json!({"password": "ten chars!"}), Err("required")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }
}
