//! What a row of the file says about an account, and how it changes the account.

use serde_json::{Map, Number, Value};

use super::mapping::{Mapping, Target};
use super::reading::Record;
use crate::account::{
    Account, Change, Common, Create, MAX_IMPORTED_ID, Mover, Patch, check_name, default_name,
};
use crate::channel::{Attribution, PromoCode};
use crate::company::{CADENCE_DAYS, Settings};
use crate::custom_fields::{CustomFields, FieldChange};
use crate::id::AccountId;
use crate::invalid::{Fault, Invalid};
use crate::money::{Amount, Capture, Currency};
use crate::pipeline::{Status, Trigger};
use crate::text::refuse_nul;
use crate::time::Time;

/// A row that can be imported. An empty cell leaves its field alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub imported_id: Option<String>,
    pub name: Option<String>,
    pub status: Option<Status>,
    /// The code as written; only a well-formed one can match.
    pub promo_code: Option<String>,
    pub capture: Capture,
    pub cadence_days: Option<i64>,
    pub fields: Vec<(String, String)>,
}

/// The result of reading a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Row(Row),
    /// Every cell is empty.
    Blank,
    Faulty(String),
}

/// Reads a record using the mapping; reports all of its errors, each with its column.
pub fn interpret(record: &Record, mapping: &Mapping, columns: &[&str]) -> Reading {
    if record.cells.iter().all(|cell| cell.trim().is_empty()) {
        return Reading::Blank;
    }
    if let Some(fault) = &record.fault {
        return Reading::Faulty(fault.clone());
    }
    let mut row = Row::default();
    let (mut amount, mut currency, mut faults) = (None, None, Vec::new());
    for ((cell, target), column) in record.cells.iter().zip(&mapping.0).zip(columns) {
        let text = unguarded(cell.trim());
        if text.is_empty() || *target == Target::Ignore {
            continue;
        }
        let taken = refuse_nul(text).and_then(|()| match target {
            Target::ImportedId => checked(text, MAX_IMPORTED_ID).map(|id| row.imported_id = Some(id)),
            Target::Name => check_name(text).map(|()| row.name = Some(text.to_owned())),
            Target::Status => status(text).map(|status| row.status = Some(status)),
            Target::PromoCode => {
                row.promo_code = Some(text.to_owned());
                Ok(())
            }
            Target::Value => Amount::parse(text).map(|value| amount = Some(value)),
            Target::Currency => Currency::parse(text).map(|code| currency = Some(code)),
            Target::CadenceDays => days(text).map(|days| row.cadence_days = Some(days)),
            Target::Field(key) => {
                row.fields.push((key.clone(), text.to_owned()));
                Ok(())
            }
            Target::Ignore => Ok(()),
        });
        if let Err(fault) = taken {
            faults.push(format!("{column}: {}", fault.detail));
        }
    }
    row.capture = Capture::from_parts(amount, currency);
    if faults.is_empty() { Reading::Row(row) } else { Reading::Faulty(faults.join("; ")) }
}

/// Removes the apostrophe that keeps a spreadsheet from treating the cell as a formula.
fn unguarded(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if rest.starts_with(FORMULA_STARTS) => rest,
        _ => text,
    }
}

/// Characters that a spreadsheet treats as the beginning of a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The cell in a form that is safe to open in a spreadsheet.
pub fn guarded(cell: &str) -> std::borrow::Cow<'_, str> {
    if cell.starts_with(FORMULA_STARTS) { format!("'{cell}").into() } else { cell.into() }
}

fn checked(text: &str, limit: crate::text::Length) -> Result<String, Fault> {
    limit.check(text).map(|()| text.to_owned())
}

/// Parses a status from its wire value or its label, in any case.
fn status(text: &str) -> Result<Status, Fault> {
    let word = |character: char| if character.is_alphanumeric() { character } else { '_' };
    Status::parse(&text.to_lowercase().chars().map(word).collect::<String>())
}

fn days(text: &str) -> Result<i64, Fault> {
    text.parse().ok().filter(|days| CADENCE_DAYS.contains(days)).ok_or_else(|| {
        let (least, most) = (CADENCE_DAYS.start(), CADENCE_DAYS.end());
        Fault::new("out_of_range", format!("must be a whole number from {least} to {most}"))
    })
}

impl Row {
    /// The code to look up, if it is well-formed.
    pub fn code(&self) -> Option<PromoCode> {
        self.promo_code.as_deref().and_then(|text| PromoCode::parse(text).ok())
    }

    /// The account that the row creates.
    pub fn create(
        &self,
        id: AccountId,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Result<Account, Invalid> {
        let given = self.name.clone();
        let name =
            given.or_else(|| self.imported_id.as_deref().map(|imported_id| default_name(imported_id, id)));
        let Some(name) = name else {
            return Err(Invalid::one("/name", "required", "is required when there is no imported_id"));
        };
        let create = Create {
            name,
            status: self.status.unwrap_or(Status::Prospect),
            imported_id: self.imported_id.clone(),
            promo_code: None,
            cadence_days: self.cadence_days,
            snoozed_until: None,
            common: self.common(&CustomFields::default())?,
        };
        Account::from_create(id, &create, attribution, settings, now)
    }

    /// Applies the row to an existing account. On an error the account is left half-changed.
    pub fn update(
        &self,
        account: &mut Account,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Result<Change, Invalid> {
        let patch = Patch {
            name: self.name.clone(),
            cadence_days: self.cadence_days.map(Some),
            common: self.common(&account.custom_fields)?,
            ..Patch::default()
        };
        let mut change = account.patch(&patch, attribution, settings, now)?;
        // Not part of the edit: a move by import is the record's, not an operator's.
        if let Some(status) = self.status {
            change.moved = account.trigger(Trigger::Set(status), Mover::Record, settings, now);
            change.changed.extend(change.moved.map(|_| "status"));
        }
        Ok(change)
    }

    fn common(&self, kept: &CustomFields) -> Result<Common, Invalid> {
        let kept = if self.fields.is_empty() { Map::new() } else { kept.to_map() };
        let typed = |(key, text): &(String, String)| (key.clone(), like(kept.get(key), text));
        let fields: Map<String, Value> = self.fields.iter().map(typed).collect();
        Ok(Common { custom_fields: FieldChange::parse(&fields)?, capture: self.capture })
    }
}

/// A cell is text. If it replaces a number or a boolean and can be read as one, it stays one.
fn like(kept: Option<&Value>, text: &str) -> Value {
    let same = match kept {
        Some(Value::Number(_)) => serde_json::from_str::<Number>(text).ok().map(Value::Number),
        Some(Value::Bool(_)) => text.to_lowercase().parse().ok().map(Value::Bool),
        _ => None,
    };
    same.unwrap_or_else(|| text.into())
}

/// Why a row was rejected, in one line.
pub fn reason(invalid: &Invalid) -> String {
    let one = |error: &crate::invalid::FieldError| {
        let member = error.pointer.trim_start_matches('/').replace('/', ".");
        format!("{member} {}", error.detail)
    };
    invalid.0.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: [&str; 8] = ["Id", "Name", "Stage", "Code", "Value", "Cur", "Every", "Plan"];
    const NOW: Time = Time::from_micros(1_700_000_000_000_000);

    fn mapping() -> Mapping {
        Mapping(vec![
            Target::ImportedId,
            Target::Name,
            Target::Status,
            Target::PromoCode,
            Target::Value,
            Target::Currency,
            Target::CadenceDays,
            Target::Field("plan".into()),
        ])
    }

    fn read(cells: [&str; 8]) -> Reading {
        let record = Record { line: 2, cells: cells.map(str::to_owned).to_vec(), fault: None };
        interpret(&record, &mapping(), &COLUMNS)
    }

    fn row(cells: [&str; 8]) -> Row {
        match read(cells) {
            Reading::Row(row) => row,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn cells_are_trimmed_and_empty_ones_change_nothing() {
        assert_eq!(
            row([" crm-1 ", "", "\t", "", "", "", "", ""]),
            Row { imported_id: Some("crm-1".into()), ..Row::default() }
        );
        assert_eq!(read(["", " ", "\u{a0}", "", "", "", "", "\n"]), Reading::Blank);
    }

    #[test]
    fn statuses_are_read_by_wire_value_or_label() {
        for text in ["in_trial", "In trial", "IN TRIAL", "in-trial", "In Trial"] {
            assert_eq!(row(["1", "", text, "", "", "", "", ""]).status, Some(Status::InTrial), "{text}");
        }
        assert_eq!(row(["1", "", "Do Not Contact", "", "", "", "", ""]).status, Some(Status::DoNotContact));
    }

    #[test]
    fn every_fault_is_named_with_its_column() {
        let long = "x".repeat(256);
        let Reading::Faulty(reason) = read([&long, "a\0b", "won", "?", "1,5", "EURO", "0", "x"]) else {
            panic!("the row should be invalid");
        };
        for part in [
            "Id: must be at most",
            "Name: must not contain the NUL",
            "Stage: must be one of",
            "Value: ",
            "Cur: ",
            "Every: must be a whole number",
        ] {
            assert!(reason.contains(part), "{part} is missing from {reason}");
        }
        let unseen = read(["1", "\u{3164}\u{200b}", "", "", "", "", "", ""]);
        assert_eq!(unseen, Reading::Faulty("Name: must contain at least one visible character".to_owned()));
        assert!(!reason.contains("Code: ") && !reason.contains("Plan: "), "{reason}");
    }

    #[test]
    fn formulas_are_guarded_and_read_back() {
        for cell in ["=1+1", "+1", "-1", "@x", "\tx", "\rx"] {
            assert_eq!(guarded(cell), format!("'{cell}"));
            assert_eq!(unguarded(&guarded(cell)), cell);
        }
        for cell in ["plain", "'quoted'", "", "1-1"] {
            assert_eq!((guarded(cell).as_ref(), unguarded(cell)), (cell, cell));
        }
    }

    #[test]
    fn a_row_creates_and_updates() {
        let settings = Settings::default();
        let full = row(["crm-1", "Acme", "Customer", "", "12.5", "eur", "7", "pro"]);
        let id = AccountId::from_bytes([1; 16]);
        let account = full.create(id, None, &settings, NOW).unwrap();
        assert_eq!(
            (account.name.as_str(), account.status, account.cadence_override),
            ("Acme", Status::Customer, Some(7))
        );
        assert_eq!(account.value.unwrap().amount_text(), "12.50");
        assert_eq!(account.custom_fields.as_json(), r#"{"plan":"pro"}"#);
        let unnamed = row(["crm-1", "", "", "", "", "", "", ""]).create(id, None, &settings, NOW).unwrap();
        assert_eq!(unnamed.name, "crm-1");
        let unseen = row(["\u{200b}", "", "", "", "", "", "", ""]).create(id, None, &settings, NOW).unwrap();
        assert_eq!(unseen.name, id.to_string(), "the account can be seen in a list");
        let nobody = row(["", "", "lost", "", "", "", "", ""]).create(id, None, &settings, NOW).unwrap_err();
        assert_eq!(reason(&nobody), "name is required when there is no imported_id");

        let mut same = account.clone();
        assert_eq!(full.update(&mut same, None, &settings, NOW.plus_days(1)).unwrap(), Change::default());
        assert_eq!(same, account);
        let mut renamed = account.clone();
        let change = row(["crm-1", "Acme Inc", "Lost", "", "", "", "", ""])
            .update(&mut renamed, None, &settings, NOW.plus_days(1))
            .unwrap();
        assert_eq!((change.changed, renamed.name.as_str()), (vec!["name", "status"], "Acme Inc"));
        assert_eq!(renamed.custom_fields, account.custom_fields);
    }

    #[test]
    fn a_cell_keeps_the_kind_of_what_it_replaces() {
        assert_eq!(like(Some(&json!(12)), "12"), json!(12));
        assert_eq!(like(Some(&json!(12)), "13.50").to_string(), "13.50");
        assert_eq!(like(Some(&json!(12)), "twelve"), json!("twelve"));
        assert_eq!(like(Some(&json!(true)), "FALSE"), json!(false));
        assert_eq!(like(Some(&json!("12")), "13"), json!("13"));
        assert_eq!(like(None, "0123"), json!("0123"));
    }

    #[test]
    fn a_move_by_import_is_not_an_operators() {
        let settings = Settings::default();
        let mut account = Account::new(AccountId::from_bytes([1; 16]), "A".into(), Status::Lost, NOW);
        account.campaign_hold = true;
        row(["1", "", "prospect", "", "", "", "", ""]).update(&mut account, None, &settings, NOW).unwrap();
        assert!(account.campaign_hold);
    }
}
