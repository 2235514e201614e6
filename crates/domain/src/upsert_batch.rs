//! A batch of upserts: many accounts in one request, each judged on its own.

use serde_json::{Map, Value};

use crate::account::{Defaults, MAX_NAME, Upsert};
use crate::activity::BatchError;
use crate::invalid::{Fault, Invalid, Members, as_array, as_object, as_text};
use crate::policy::{NamePolicy, StatusPolicy};

pub const MAX_ACCOUNTS: usize = 500;

/// A batch after parsing. An account that breaks a rule doesn't affect the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub project: String,
    /// In the order of the request. Pointers are those of a single upsert.
    pub accounts: Vec<Result<Upsert, Invalid>>,
}

/// Parses the request, and then each of its `accounts`. The policies apply to every account that has none of its own.
/// Unknown members of the request are refused; those of an account are ignored, as in a single upsert.
pub fn parse(body: &Map<String, Value>) -> Result<Batch, BatchError> {
    let mut members = Members::of(body);
    let project = members.required("project", |value| as_text(value, MAX_NAME));
    let name_policy = members.optional("name_policy", NamePolicy::from_json);
    let status_policy = members.optional("status_policy", StatusPolicy::from_json);
    let rows = members.required("accounts", as_array);
    if rows.is_some_and(Vec::is_empty) {
        members.fault("accounts", Fault::new("empty", "must contain at least one account"));
    }
    members.refuse_unknown();
    let built = members.build(|| Some((Defaults { project: project?, name_policy, status_policy }, rows?)));
    let (defaults, rows) = built.map_err(BatchError::Invalid)?;
    if rows.len() > MAX_ACCOUNTS {
        return Err(BatchError::TooLarge { received: rows.len() });
    }
    let account = |row: &Value| {
        let row = as_object(row).map_err(|fault| Invalid::one("", fault.code, fault.detail))?;
        Upsert::parse_in_batch(row, &defaults)
    };
    let accounts = rows.iter().map(account).collect();
    Ok(Batch { project: defaults.project, accounts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn batch(body: Value) -> Result<Batch, BatchError> {
        parse(body.as_object().unwrap())
    }

    fn faults(body: Value) -> Vec<(String, &'static str)> {
        match batch(body) {
            Err(BatchError::Invalid(invalid)) => {
                invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_request_itself_is_checked_whole() {
        let table = [
            (json!({}), vec![("/project", "required"), ("/accounts", "required")]),
            (json!({"project": "acme", "accounts": []}), vec![("/accounts", "empty")]),
            (
                json!({"project": 1, "accounts": {}}),
                vec![("/project", "wrong_type"), ("/accounts", "wrong_type")],
            ),
            (
                json!({"project": "acme", "accounts": [{}], "name_policy": "x", "status_policy": 1, "strict": true}),
                vec![
                    ("/name_policy", "unknown_policy"),
                    ("/status_policy", "wrong_type"),
                    ("/strict", "unknown_member"),
                ],
            ),
        ];
        for (body, expected) in table {
            let expected: Vec<_> =
                expected.into_iter().map(|(pointer, code)| (pointer.to_owned(), code)).collect();
            assert_eq!(faults(body.clone()), expected, "{body}");
        }
    }

    #[test]
    fn each_account_is_judged_on_its_own() {
        let body = json!({"project": "acme", "accounts": [
            {"imported_id": "a"}, 7, {"imported_id": "", "status": "won"}, {"imported_id": "b", "project": "globex"},
        ]});
        let parsed = batch(body).unwrap().accounts;
        let codes = |row: &Result<Upsert, Invalid>| match row {
            Ok(upsert) => vec![(upsert.imported_id.clone(), "")],
            Err(invalid) => invalid.0.iter().map(|error| (error.pointer.clone(), error.code)).collect(),
        };
        let found: Vec<Vec<(String, &str)>> = parsed.iter().map(codes).collect();
        let expected = [
            vec![("a", "")],
            vec![("", "wrong_type")],
            vec![("/imported_id", "empty"), ("/status", "unknown_status")],
            vec![("b", "")],
        ];
        let expected = expected
            .map(|row| row.into_iter().map(|(word, code)| (word.to_owned(), code)).collect::<Vec<_>>());
        assert_eq!(found, expected);
        let projects: Vec<&str> = parsed.iter().flatten().map(|upsert| upsert.project.as_str()).collect();
        assert_eq!(projects, ["acme", "globex"], "the account's own project counts");
    }

    #[test]
    fn the_policies_of_the_batch_apply_unless_an_account_has_its_own() {
        let body = json!({"project": "acme", "name_policy": "update", "status_policy": "forward", "accounts": [
            {"imported_id": "a"}, {"imported_id": "b", "name_policy": "create", "status_policy": "set"},
            {"imported_id": "c", "name": " "}, {"imported_id": "d", "name": " ", "name_policy": "create"},
        ]});
        let parsed = batch(body).unwrap().accounts;
        let policies = |row: &Upsert| (row.name_policy.unwrap(), row.status_policy.unwrap());
        assert_eq!(policies(parsed[0].as_ref().unwrap()), (NamePolicy::Update, StatusPolicy::Forward));
        assert_eq!(policies(parsed[1].as_ref().unwrap()), (NamePolicy::Create, StatusPolicy::Set));
        assert_eq!(parsed[2].as_ref().unwrap_err().0[0].pointer, "/name", "a name that is used is checked");
        assert!(parsed[3].is_ok(), "a name that may be ignored is not");
    }

    #[test]
    fn a_batch_has_at_most_500_accounts() {
        let of = |count: usize| {
            batch(json!({"project": "acme", "accounts": vec![json!({"imported_id": "a"}); count]}))
        };
        assert_eq!(of(500).unwrap().accounts.len(), 500);
        assert_eq!(of(501), Err(BatchError::TooLarge { received: 501 }));
    }
}
