//! Applies rows to their accounts in memory: the same for a dry run and for the real one.

use std::collections::HashMap;

use rapport_domain::account::Account;
use rapport_domain::channel::Attribution;
use rapport_domain::company::Settings;
use rapport_domain::id::AccountId;
use rapport_domain::import::failure::Failure;
use rapport_domain::import::row::{Reading, Row};
use rapport_domain::import::{Counts, Import};
use rapport_domain::invalid::Invalid;
use rapport_domain::member::Email;
use rapport_domain::pipeline::Move;
use rapport_domain::time::Time;
use rapport_store::{Snapshot, channel};

use super::addresses::{Addresses, Refused};

/// A row of the file and its position.
#[derive(Debug, Clone)]
pub struct Line {
    /// The line it begins on.
    pub number: i64,
    pub cells: Vec<String>,
    pub reading: Reading,
}

/// The outcome of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Created,
    /// With the move, if it moved the account.
    Updated(Option<Move>),
    Unchanged,
    Skipped,
    Failed(Vec<Failure>),
}

impl Outcome {
    pub fn count(&self, counts: &mut Counts) {
        match self {
            Self::Created => counts.created += 1,
            Self::Updated(_) => counts.updated += 1,
            Self::Unchanged => counts.unchanged += 1,
            Self::Skipped => counts.skipped += 1,
            Self::Failed(_) => counts.failed += 1,
        }
    }
}

/// An account that rows refer to.
#[derive(Debug)]
pub struct Known {
    pub account: Account,
    /// The account before the import; `None` if it was created here.
    pub before: Option<Account>,
    /// The email addresses that rows gave it.
    pub added: Vec<Email>,
}

impl Known {
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// Whether the account itself is changed, besides its addresses.
    pub fn is_edited(&self) -> bool {
        self.before.as_ref().is_some_and(|before| *before != self.account)
    }

    pub fn is_changed(&self) -> bool {
        self.is_edited() || (!self.is_new() && !self.added.is_empty())
    }
}

/// How to apply rows.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub import: &'a Import,
    pub settings: &'a Settings,
    pub now: Time,
}

#[derive(Debug, Default)]
pub struct Work {
    /// By imported_id.
    pub keyed: HashMap<String, Known>,
    /// Created without an imported_id.
    pub unkeyed: Vec<Known>,
    codes: HashMap<String, Attribution>,
    pub addresses: Addresses,
}

/// The distinct imported_ids that rows name, in order.
pub fn keys(lines: &[Line]) -> Vec<&str> {
    let mut keys: Vec<&str> = rows(lines).filter_map(|row| row.imported_id.as_deref()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

pub fn rows(lines: &[Line]) -> impl Iterator<Item = &Row> {
    lines.iter().filter_map(|line| match &line.reading {
        Reading::Row(row) => Some(row),
        Reading::Blank | Reading::Faulty(_) => None,
    })
}

impl Work {
    /// Starts with these accounts, which have imported_ids, and the active codes that the rows name.
    pub fn over(
        snapshot: &mut Snapshot,
        accounts: Vec<Account>,
        lines: &[Line],
    ) -> Result<Self, rapport_store::Error> {
        let mut folded: Vec<String> =
            rows(lines).filter_map(|row| row.code().map(|code| code.folded())).collect();
        folded.sort_unstable();
        folded.dedup();
        let codes = channel::attributions(snapshot, &folded)?.into_iter().collect();
        let addresses = Addresses::over(snapshot, &accounts, lines)?;
        let known = |account: Account| {
            let key = account.imported_id.clone().unwrap_or_default();
            (key, Known { before: Some(account.clone()), account, added: Vec::new() })
        };
        Ok(Self { keyed: accounts.into_iter().map(known).collect(), unkeyed: Vec::new(), codes, addresses })
    }

    /// Applies one row. `new_id` supplies the id if it creates an account.
    pub fn apply(&mut self, line: &Line, rules: Rules, new_id: impl FnOnce() -> AccountId) -> Outcome {
        let row = match &line.reading {
            Reading::Row(row) => row,
            Reading::Blank => return Outcome::Skipped,
            Reading::Faulty(failures) => return Outcome::Failed(failures.clone()),
        };
        let known = row.imported_id.as_ref().and_then(|key| self.keyed.get(key));
        let done = match known.map(|known| known.account.clone()) {
            Some(_) if !rules.import.mode.updates() => Ok(Outcome::Skipped),
            None if !rules.import.mode.creates() => Ok(Outcome::Skipped),
            Some(account) => self.update(row, account, rules),
            None => self.create(row, new_id(), rules),
        };
        done.unwrap_or_else(|refused| Outcome::Failed(refused.failures(line, rules.import)))
    }

    fn create(&mut self, row: &Row, id: AccountId, rules: Rules) -> Result<Outcome, NotTaken> {
        let attribution = row.code().and_then(|code| self.codes.get(&code.folded()));
        let account = row.create(id, attribution, rules.settings, rules.now)?;
        let added = self.addresses.new_to(id, &row.emails)?;
        self.addresses.add(id, &added);
        let known = Known { account, before: None, added };
        match &row.imported_id {
            Some(key) => {
                self.keyed.insert(key.clone(), known);
            }
            None => self.unkeyed.push(known),
        }
        Ok(Outcome::Created)
    }

    fn update(&mut self, row: &Row, mut account: Account, rules: Rules) -> Result<Outcome, NotTaken> {
        let attribution = row.code().and_then(|code| self.codes.get(&code.folded()));
        let change = row.update(&mut account, attribution, rules.settings, rules.now)?;
        let added = self.addresses.new_to(account.id, &row.emails)?;
        if change.changed.is_empty() && added.is_empty() {
            return Ok(Outcome::Unchanged);
        }
        self.addresses.add(account.id, &added);
        if let Some(known) = row.imported_id.as_ref().and_then(|key| self.keyed.get_mut(key)) {
            known.account = account;
            known.added.extend(added);
        }
        Ok(Outcome::Updated(change.moved))
    }

    /// The account the last applied row referred to.
    pub fn account_of(&self, line: &Line) -> Option<&Account> {
        let Reading::Row(row) = &line.reading else { return None };
        let known = match &row.imported_id {
            Some(key) => self.keyed.get(key),
            None => self.unkeyed.last(),
        };
        known.map(|known| &known.account)
    }

    /// The addresses that rows so far gave to the account of this row.
    pub fn added_by(&self, line: &Line) -> &[Email] {
        let Reading::Row(Row { imported_id: Some(key), .. }) = &line.reading else { return &[] };
        self.keyed.get(key).map_or(&[][..], |known| known.added.as_slice())
    }

    /// The promo code that the row names, if it doesn't match.
    pub fn unmatched_code<'a>(&self, line: &'a Line) -> Option<&'a str> {
        let Reading::Row(row) = &line.reading else { return None };
        let matches = row.code().is_some_and(|code| self.codes.contains_key(&code.folded()));
        row.promo_code.as_deref().filter(|_| !matches)
    }

    /// All accounts, in the one order that every transaction uses, so that they can't deadlock.
    pub fn all(&self) -> Vec<&Known> {
        let mut all: Vec<&Known> = self.keyed.values().chain(&self.unkeyed).collect();
        all.sort_unstable_by(|a, b| {
            (&a.account.imported_id, a.account.id).cmp(&(&b.account.imported_id, b.account.id))
        });
        all
    }
}

/// Why an account can't take a row.
enum NotTaken {
    Invalid(Invalid),
    Address(Refused),
}

impl NotTaken {
    fn failures(self, line: &Line, import: &Import) -> Vec<Failure> {
        let cell = |field: &str| {
            let number = import.column_of(field)?;
            let value = line.cells.get(number).map_or("", |cell| cell.trim());
            Some((import.columns.get(number)?.name.clone(), value.to_owned()))
        };
        match self {
            Self::Invalid(invalid) => Failure::of_invalid(&invalid, cell),
            Self::Address((code, detail)) => {
                let (column, value) = cell("emails").unzip();
                vec![Failure { column, code, detail, value: value.unwrap_or_default() }]
            }
        }
    }
}

impl From<Invalid> for NotTaken {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Refused> for NotTaken {
    fn from(refused: Refused) -> Self {
        Self::Address(refused)
    }
}
