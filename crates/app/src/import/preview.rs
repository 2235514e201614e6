//! The dry run: applies the same rules to the whole file and writes nothing except its findings.
//!
//! It lives in the memory of one process. If that process ends, another starts it over.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use rapport_domain::account::Account;
use rapport_domain::difference::{Differences, Shown};
use rapport_domain::id::{AccountId, ImportId};
use rapport_domain::import::failure::{Findings, in_words};
use rapport_domain::import::preview::{Difference, Named, Preview, RowError};
use rapport_domain::import::reading::Position;
use rapport_domain::import::row::{Reading, Row};
use rapport_domain::import::{Counts, Import, SHOWN, State};
use rapport_store::{Lane, Tx, import, import_data};
use serde_json::{Value, json};

use super::patiently;
use super::work::{Known, Line, Outcome, Rules, Work, keys, rows};
use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;

/// The number of created imported_ids to remember; beyond it, repeated rows count as created twice.
const MAX_REMEMBERED: usize = 2_000_000;
/// Steps between two progress updates.
const NOTE_EVERY: usize = 10;

pub struct DryRun {
    at: Position,
    counts: Counts,
    rows: i64,
    /// Hashes of the imported_ids that would be created.
    made: HashSet<u64>,
    hasher: RandomState,
    /// Hashes of the email addresses that would be added, and the accounts that would get them.
    given: HashMap<u64, AccountId>,
    differences: Vec<Difference>,
    errors: Vec<RowError>,
    findings: Findings,
    steps: usize,
}

impl DryRun {
    /// It takes no locks, so a step may be larger than that of a real run.
    pub const STEP_ROWS: usize = 1_000;

    pub fn new(import: &Import) -> Self {
        Self {
            at: import.data,
            counts: Counts::default(),
            rows: 0,
            made: HashSet::new(),
            hasher: RandomState::new(),
            given: HashMap::new(),
            differences: Vec::new(),
            errors: Vec::new(),
            findings: Findings::default(),
            steps: 0,
        }
    }

    pub fn at(&self) -> Position {
        self.at
    }

    /// Previews some rows; returns the updated import, or `None` if it is no longer ours.
    pub async fn step(
        &mut self,
        (app, access): (&App, &Access),
        import: &Import,
        runner: i64,
        lines: Arc<[Line]>,
        to: Position,
    ) -> Result<Option<Import>, Error> {
        let asked = Arc::clone(&lines);
        let read = app.read(access, Needs::Server, move |snapshot, _| {
            let accounts = import_data::accounts(snapshot, &keys(&asked))?;
            Work::over(snapshot, accounts, &asked)
        });
        let answer = read.await?;
        let rules = Rules { import, settings: &answer.company.settings, now: answer.now };
        let mut work = answer.reply;
        for email in rows(&lines).flat_map(|row| &row.emails) {
            if let Some(account) = self.given.get(&self.hasher.hash_one(email)) {
                work.addresses.give(email, *account);
            }
        }
        for line in lines.iter() {
            self.try_row(&mut work, line, rules);
            self.rows += 1;
        }
        self.remember_addresses(&work);
        for row in rows(&lines) {
            if let Some(key) = &row.imported_id
                && self.made.len() < MAX_REMEMBERED
                && work.keyed.get(key).is_some_and(Known::is_new)
            {
                self.made.insert(self.hasher.hash_one(key));
            }
        }
        self.at = to;
        self.steps += 1;
        let is_last = to.offset >= import.bytes;
        if !is_last && !self.steps.is_multiple_of(NOTE_EVERY) {
            return Ok(Some(import.clone()));
        }
        let found = is_last.then(|| self.found());
        let note = Note { id: import.id, runner, at: to, rows: self.rows, found };
        patiently(app, access, note).await
    }

    fn remember_addresses(&mut self, work: &Work) {
        for known in work.all() {
            if self.given.len() >= MAX_REMEMBERED {
                return;
            }
            let hasher = &self.hasher;
            self.given.extend(known.added.iter().map(|email| (hasher.hash_one(email), known.account.id)));
        }
    }

    fn try_row(&mut self, work: &mut Work, line: &Line, rules: Rules) {
        let is_made = self.is_made_above(work, line);
        let before = work.account_of(line).filter(|_| self.differences.len() < SHOWN).cloned();
        let id = self.id_for(line);
        let outcome = match work.apply(line, rules, || id) {
            // A row further up creates the account, so this one finds it.
            Outcome::Created if is_made && rules.import.mode.updates() => Outcome::Updated(None),
            Outcome::Created if is_made => Outcome::Skipped,
            outcome => outcome,
        };
        outcome.count(&mut self.counts);
        let is_new_code = work.unmatched_code(line).is_some_and(|code| self.findings.miss(code));
        self.counts.promo_codes_unmatched += i64::from(is_new_code);
        if let Outcome::Failed(failures) = &outcome {
            self.findings.fail(line.number, failures);
            if self.errors.len() < SHOWN {
                self.errors.push(RowError { line: line.number, reason: in_words(failures) });
            }
        }
        if let (Outcome::Updated(_), false, Some(before)) = (&outcome, is_made, before) {
            self.show_changes(work, line, before);
        }
    }

    /// Notes what a row changes in its account, as far as that is shown.
    fn show_changes(&mut self, work: &Work, line: &Line, before: Account) {
        let Some(after) = work.account_of(line) else { return };
        let shown = Differences::between(&before, after).with_emails(work.added_by(line)).shown();
        let room = SHOWN.saturating_sub(self.differences.len());
        let account = Named { id: before.id, imported_id: before.imported_id, name: before.name };
        let differences = shown.into_iter().take(room);
        self.differences.extend(differences.map(|Shown { field, before, after }| Difference {
            line: line.number,
            account: account.clone(),
            field,
            before,
            after,
        }));
    }

    /// The id of the account that a row would create: the same for all rows of one imported_id.
    fn id_for(&self, line: &Line) -> AccountId {
        let hash = match &line.reading {
            Reading::Row(Row { imported_id: Some(key), .. }) => self.hasher.hash_one(key),
            _ => self.hasher.hash_one(self.rows),
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        AccountId::from_bytes(bytes)
    }

    /// Whether a row of an earlier step would have created the account this row names.
    fn is_made_above(&self, work: &Work, line: &Line) -> bool {
        let Reading::Row(row) = &line.reading else { return false };
        let Some(key) = &row.imported_id else { return false };
        !work.keyed.contains_key(key) && self.made.contains(&self.hasher.hash_one(key))
    }

    fn found(&self) -> Value {
        let found = Preview {
            rows: self.rows,
            counts: self.counts,
            exact: self.made.len() < MAX_REMEMBERED,
            differences: &self.differences,
            errors: &self.errors,
            failures: self.findings.by_rows(),
            unmatched_promo_codes: self
                .findings
                .unmatched_codes
                .iter()
                .take(SHOWN)
                .map(String::as_str)
                .collect(),
        };
        json!(found)
    }
}

/// The progress of a dry run, and its findings at the end.
#[derive(Clone)]
struct Note {
    id: ImportId,
    runner: i64,
    at: Position,
    rows: i64,
    found: Option<Value>,
}

impl Command for Note {
    type Reply = Option<Import>;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Option<Import>, Error> {
        let Some(mut import) = import::lock(tx, self.id)? else { return Ok(None) };
        if import.state != State::Previewing || !import.may_take(self.runner, cx.now) {
            return Ok(None);
        }
        import.take(self.runner, cx.now);
        import.at = self.at;
        import.rows_done = self.rows;
        if let Some(found) = &self.found {
            import.finish_preview(found.clone());
        }
        import::update(tx, &import)?;
        Ok(Some(import))
    }
}
