//! Applies rows to their accounts in memory: the same for a dry run and for the real one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rapport_domain::account::Account;
use rapport_domain::channel::Attribution;
use rapport_domain::company::Settings;
use rapport_domain::id::AccountId;
use rapport_domain::import::row::{Reading, Row, reason};
use rapport_domain::import::{Counts, Mode};
use rapport_domain::pipeline::Move;
use rapport_domain::time::Time;
use rapport_store::{Snapshot, channel};

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
    Failed(String),
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
}

impl Known {
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    pub fn is_changed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| *before != self.account)
    }
}

/// How to apply rows.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub mode: Mode,
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
        let known = |account: Account| {
            let key = account.imported_id.clone().unwrap_or_default();
            (key, Known { before: Some(account.clone()), account })
        };
        Ok(Self { keyed: accounts.into_iter().map(known).collect(), unkeyed: Vec::new(), codes })
    }

    /// Applies one row. `new_id` supplies the id if it creates an account.
    pub fn apply(&mut self, line: &Line, rules: Rules, new_id: impl FnOnce() -> AccountId) -> Outcome {
        let row = match &line.reading {
            Reading::Row(row) => row,
            Reading::Blank => return Outcome::Skipped,
            Reading::Faulty(reason) => return Outcome::Failed(reason.clone()),
        };
        let attribution = row.code().and_then(|code| self.codes.get(&code.folded()));
        let create = |row: &Row| {
            if !rules.mode.creates() {
                return Ok(None);
            }
            row.create(new_id(), attribution, rules.settings, rules.now).map(Some)
        };
        let Some(key) = &row.imported_id else {
            return match create(row) {
                Ok(Some(account)) => {
                    self.unkeyed.push(Known { account, before: None });
                    Outcome::Created
                }
                Ok(None) => Outcome::Skipped,
                Err(invalid) => Outcome::Failed(reason(&invalid)),
            };
        };
        match self.keyed.entry(key.clone()) {
            Entry::Vacant(place) => match create(row) {
                Ok(Some(account)) => {
                    place.insert(Known { account, before: None });
                    Outcome::Created
                }
                Ok(None) => Outcome::Skipped,
                Err(invalid) => Outcome::Failed(reason(&invalid)),
            },
            Entry::Occupied(_) if !rules.mode.updates() => Outcome::Skipped,
            Entry::Occupied(place) => {
                let known = place.into_mut();
                let mut account = known.account.clone();
                match row.update(&mut account, attribution, rules.settings, rules.now) {
                    Ok(change) if change.changed.is_empty() => Outcome::Unchanged,
                    Ok(change) => {
                        known.account = account;
                        Outcome::Updated(change.moved)
                    }
                    Err(invalid) => Outcome::Failed(reason(&invalid)),
                }
            }
        }
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

    /// Whether the row names a promo code that doesn't match.
    pub fn has_unmatched_code(&self, line: &Line) -> bool {
        let Reading::Row(row) = &line.reading else { return false };
        row.promo_code.is_some() && !row.code().is_some_and(|code| self.codes.contains_key(&code.folded()))
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
