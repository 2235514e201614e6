//! What a row of the file says about an account, and how it changes the account.

use serde_json::{Map, Number, Value};

use super::cell::{self, Cadence};
use super::date::{self, Moment, Order};
use super::failure::Failure;
use super::format::{Format, is_nothing};
use super::mapping::{Mapping, Target};
use super::number::{self, Decimal, Sign};
use super::reading::Record;
use super::status_word::StatusWords;
use crate::account::{
    Account, Change, Common, Create, MAX_IMPORTED_ID, Mover, Patch, check_name, default_name,
};
use crate::channel::{Attribution, PromoCode};
use crate::company::Settings;
use crate::custom_fields::{CustomFields, FieldChange};
use crate::id::AccountId;
use crate::invalid::{Fault, Invalid};
use crate::member::Email;
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
    /// The amount was written with a plain `$` and no other currency.
    pub in_dollars: bool,
    pub emails: Vec<Email>,
    pub last_contact: Option<Moment>,
    pub cadence: Option<Cadence>,
    pub snoozed_until: Option<Moment>,
    pub fields: Vec<(String, String)>,
}

/// The result of reading a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Row(Row),
    /// Every cell is empty.
    Blank,
    Faulty(Vec<Failure>),
}

/// How the cells of a record are read.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    pub columns: &'a [&'a str],
    pub mapping: &'a Mapping,
    /// The format of each column that needs one.
    pub formats: &'a [Option<Format>],
    pub words: &'a StatusWords,
}

impl Recipe<'_> {
    /// Reads a record; reports all of its errors, each with its column.
    pub fn interpret(&self, record: &Record) -> Reading {
        if record.cells.iter().all(|cell| cell.trim().is_empty()) {
            return Reading::Blank;
        }
        if let Some(fault) = &record.fault {
            return Reading::Faulty(vec![Failure::of_row(fault)]);
        }
        let mut cells = Cells::default();
        let mut failures = Vec::new();
        let targets = record.cells.iter().zip(&self.mapping.0).zip(self.columns).enumerate();
        for (number, ((cell, target), column)) in targets {
            let text = unguarded(cell.trim());
            if text.is_empty() || *target == Target::Ignore {
                continue;
            }
            let format = self.formats.get(number).copied().flatten();
            if let Err(fault) = refuse_nul(text).and_then(|()| cells.take(text, target, format, self.words)) {
                failures.push(Failure::of_cell(column, text, fault));
            }
        }
        if failures.is_empty() { Reading::Row(cells.row()) } else { Reading::Faulty(failures) }
    }
}

/// The cells of a record, as far as they are read.
#[derive(Default)]
struct Cells {
    row: Row,
    amount: Option<Amount>,
    currency: Option<Currency>,
    /// The currency that is written with the amount.
    sign: Option<Sign>,
}

impl Cells {
    fn take(
        &mut self,
        text: &str,
        target: &Target,
        format: Option<Format>,
        words: &StatusWords,
    ) -> Result<(), Fault> {
        let row = &mut self.row;
        match target {
            Target::ImportedId => row.imported_id = Some(checked(text, MAX_IMPORTED_ID)?),
            Target::Name => {
                check_name(text)?;
                row.name = Some(text.to_owned());
            }
            Target::Status => row.status = words.meaning(text).ok_or_else(unknown_status)?.status(),
            Target::PromoCode => row.promo_code = Some(text.to_owned()),
            Target::Field(key) => row.fields.push((key.clone(), text.to_owned())),
            Target::Ignore => {}
            _ if is_nothing(text) => {}
            Target::Value => {
                let decimal = match format {
                    Some(Format::Number(decimal)) => decimal,
                    _ => Decimal::Point,
                };
                let (amount, sign) = number::read(text, decimal)?;
                (self.amount, self.sign) = (Some(amount), sign);
            }
            Target::Currency => self.currency = Some(Currency::parse(text)?),
            Target::Emails => row.emails = cell::emails(text)?,
            Target::LastContact => row.last_contact = Some(moment(text, format)?),
            Target::SnoozedUntil => row.snoozed_until = Some(moment(text, format)?),
            Target::CadenceDays => row.cadence = Some(cell::cadence(text)?),
        }
        Ok(())
    }

    /// A currency in a column of its own comes before the one that is written with the amount.
    fn row(self) -> Row {
        let Self { mut row, amount, currency, sign } = self;
        let written = match sign {
            Some(Sign::Code(code)) => Some(code),
            Some(Sign::Dollar) | None => None,
        };
        row.in_dollars = currency.is_none() && sign == Some(Sign::Dollar);
        row.capture = Capture::from_parts(amount, currency.or(written));
        row
    }
}

fn moment(text: &str, format: Option<Format>) -> Result<Moment, Fault> {
    let order = match format {
        Some(Format::Date(order)) => order,
        _ => Order::YearFirst,
    };
    date::read(text, order)
}

fn unknown_status() -> Fault {
    let labels = Status::ALL.map(Status::label).join(", ");
    Fault::new("unknown_status", format!("must be one of: {labels}, or a word that you choose a stage for"))
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
            cadence_days: self.cadence.and_then(own_days),
            snoozed_until: self.snoozed_until.map(|moment| moment.date(&settings.time_zone)),
            common: self.common(&CustomFields::default(), settings)?,
        };
        let contacted_at = self.contacted_at(settings, now)?;
        let mut account = Account::from_create(id, &create, attribution, settings, now)?;
        if let Some(at) = contacted_at {
            account.import_contact(at, now);
        }
        Ok(account)
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
            cadence_days: self.cadence.map(own_days),
            snoozed_until: self.snoozed_until.map(|moment| Some(moment.date(&settings.time_zone))),
            common: self.common(&account.custom_fields, settings)?,
            ..Patch::default()
        };
        let contacted_at = self.contacted_at(settings, now)?;
        let mut change = account.patch(&patch, attribution, settings, now)?;
        // Not part of the edit: a move by import is the record's, not an operator's.
        if let Some(status) = self.status {
            change.moved = account.trigger(Trigger::Set(status), Mover::Record, settings, now);
            change.changed.extend(change.moved.map(|_| "status"));
        }
        // A contact that was logged here and is later stays the last one.
        if contacted_at.is_some_and(|at| account.import_contact(at, now)) {
            change.changed.push("last_contact_at");
        }
        Ok(change)
    }

    /// When the last contact was. The clock starts there; no contact is logged, because nobody knows which one it was.
    fn contacted_at(&self, settings: &Settings, now: Time) -> Result<Option<Time>, Invalid> {
        let at = self.last_contact.map(|moment| moment.at(&settings.time_zone));
        if at.is_some_and(|at| at > now) {
            return Err(Invalid::one("/last_contact_at", "in_the_future", "must not be in the future"));
        }
        Ok(at)
    }

    fn common(&self, kept: &CustomFields, settings: &Settings) -> Result<Common, Invalid> {
        let kept = if self.fields.is_empty() { Map::new() } else { kept.to_map() };
        let typed = |(key, text): &(String, String)| (key.clone(), like(kept.get(key), text));
        let fields: Map<String, Value> = self.fields.iter().map(typed).collect();
        let capture = match self.capture {
            Capture::Set { amount, currency: None } if self.in_dollars => {
                Capture::Set { amount, currency: Some(dollar(settings.default_currency)) }
            }
            capture => capture,
        };
        Ok(Common { custom_fields: FieldChange::parse(&fields)?, capture })
    }
}

fn own_days(cadence: Cadence) -> Option<i64> {
    match cadence {
        Cadence::Days(days) => Some(days),
        Cadence::Company => None,
    }
}

/// The currencies that are written with a plain `$`.
const DOLLARS: [&str; 10] = ["USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "CLP", "COP"];

fn dollar(default: Currency) -> Currency {
    if DOLLARS.contains(&default.code()) { default } else { Currency::USD }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::failure::in_words;
    use jiff::civil::Date;
    use jiff::tz::TimeZone;
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
        let words = StatusWords::default();
        Recipe { columns: &COLUMNS, mapping: &mapping(), formats: &[], words: &words }.interpret(&record)
    }

    /// A row of one cell, for one field, in one format.
    fn cell(target: Target, format: Option<Format>, text: &str) -> Result<Row, String> {
        let record = Record { line: 2, cells: vec!["1".to_owned(), text.to_owned()], fault: None };
        let mapping = Mapping(vec![Target::ImportedId, target]);
        let words = json!({"hot": "in_trial", "n/a": "keep"});
        let words = StatusWords::parse(words.as_object().unwrap()).unwrap();
        let formats = [None, format];
        let recipe = Recipe { columns: &["Id", "Cell"], mapping: &mapping, formats: &formats, words: &words };
        match recipe.interpret(&record) {
            Reading::Row(row) => Ok(row),
            Reading::Blank => panic!("not blank"),
            Reading::Faulty(failures) => Err(in_words(&failures)),
        }
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
        let Reading::Faulty(failures) = read([&long, "a\0b", "nowhere", "?", "1,5", "EURO", "0", "x"]) else {
            panic!("the row should be invalid");
        };
        let reason = in_words(&failures);
        for part in [
            "Id: must be at most",
            "Name: must not contain the NUL",
            "Stage: must be one of",
            "Value: ",
            "Cur: ",
            "Every: must be a number of days",
        ] {
            assert!(reason.contains(part), "{part} is missing from {reason}");
        }
        let Reading::Faulty(unseen) = read(["1", "\u{3164}\u{200b}", "", "", "", "", "", ""]) else {
            panic!("the name should be invalid");
        };
        assert_eq!(in_words(&unseen), "Name: must contain at least one visible character");
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
        assert_eq!(nobody.0[0].pointer, "/name");

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

    #[test]
    fn numbers_and_dates_are_read_in_their_columns_format() {
        let comma = Some(Format::Number(Decimal::Comma));
        let amount = |row: Row| match row.capture {
            Capture::Set { amount, currency } => {
                (amount.ten_thousandths() / 10_000, currency.map(Currency::code))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(amount(cell(Target::Value, comma, "12.500,00 €").unwrap()), (12_500, Some("EUR")));
        assert_eq!(amount(cell(Target::Value, None, "1,200").unwrap()), (1_200, None));
        assert_eq!(cell(Target::Value, comma, "k.A.").unwrap().capture, Capture::Keep);
        assert_eq!(
            cell(Target::Value, comma, "1,200.00").unwrap_err(),
            "Cell: must be an amount such as 1.200,50"
        );
        let day_first = Some(Format::Date(Order::DayFirst));
        let snoozed = cell(Target::SnoozedUntil, day_first, "03/04/2027").unwrap().snoozed_until;
        assert_eq!(snoozed, Some(Moment::Date(Date::constant(2027, 4, 3))));
        assert!(cell(Target::LastContact, day_first, "-").unwrap().last_contact.is_none());
        assert!(cell(Target::LastContact, None, "03/04/2027").is_err());
        assert_eq!(cell(Target::Emails, None, "a@x.de; b@x.de").unwrap().emails.len(), 2);
        assert_eq!(cell(Target::CadenceDays, None, "default").unwrap().cadence, Some(Cadence::Company));
    }

    #[test]
    fn a_chosen_word_is_a_stage_or_none() {
        assert_eq!(cell(Target::Status, None, "Hot").unwrap().status, Some(Status::InTrial));
        assert_eq!(cell(Target::Status, None, "N/A").unwrap().status, None);
        assert_eq!(cell(Target::Status, None, "Kunde").unwrap().status, Some(Status::Customer));
        assert!(
            cell(Target::Status, None, "nowhere").unwrap_err().starts_with("Cell: must be one of: Prospect")
        );
    }

    #[test]
    fn a_dollar_is_the_companys_own_if_it_has_one() {
        let row = cell(Target::Value, None, "$1,200").unwrap();
        let value = |default: &str| {
            let settings =
                Settings { default_currency: Currency::parse(default).unwrap(), ..Settings::default() };
            let account = row.create(AccountId::from_bytes([1; 16]), None, &settings, NOW).unwrap();
            account.value.unwrap().currency.code()
        };
        assert_eq!(["USD", "CAD", "EUR"].map(value), ["USD", "CAD", "USD"]);
    }

    #[test]
    fn the_last_contact_moves_the_clock_forward_only() {
        let settings = Settings { time_zone: TimeZone::get("Europe/Berlin").unwrap(), ..Settings::default() };
        let row = |text: &str| Row {
            imported_id: Some("1".into()),
            last_contact: Some(date::read(text, Order::DayFirst).unwrap()),
            ..Row::default()
        };
        let id = AccountId::from_bytes([1; 16]);
        let mut account = row("01.07.2023").create(id, None, &settings, NOW).unwrap();
        assert_eq!(account.last_contact_at.unwrap().to_string(), "2023-06-30T22:00:00Z");
        let earlier = row("01.06.2023").update(&mut account, None, &settings, NOW).unwrap();
        assert_eq!(earlier, Change::default());
        let later = row("02.07.2023").update(&mut account, None, &settings, NOW.plus_days(1)).unwrap();
        assert_eq!((later.changed, account.updated_at), (vec!["last_contact_at"], NOW.plus_days(1)));
        let future = row("01.07.2033").update(&mut account.clone(), None, &settings, NOW).unwrap_err();
        assert_eq!((future.0[0].pointer.as_str(), future.0[0].code), ("/last_contact_at", "in_the_future"));
        assert!(row("01.07.2033").create(id, None, &settings, NOW).is_err());
    }
}
