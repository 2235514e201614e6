//! Runs an import: the lease of its runner, and its real steps.

use std::collections::HashMap;
use std::sync::Arc;

use rapport_domain::account::Account;
use rapport_domain::difference::Differences;
use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, CompanyId, ImportId};
use rapport_domain::import::failure::{Findings, in_words};
use rapport_domain::import::reading::Position;
use rapport_domain::import::{Counts, Import, MAX_KEPT_ERRORS, STEP_ROWS, State};
use rapport_domain::pipeline::Source;
use rapport_store::account::Edit;
use rapport_store::import_data::{self, Changed, ErrorRow};
use rapport_store::{Lane, Tx, import};
use serde_json::json;

use super::preview::DryRun;
use super::window::Window;
use super::work::{Known, Line, Outcome, Rules, Work, keys, rows};
use super::{addresses, patiently, undo};
use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::{Outbox, wants};

/// What remains to be done after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// The next step can follow immediately.
    More,
    /// Another process is running it.
    Elsewhere,
    Ended,
}

/// Runs one import. It holds the import by a lease that each step renews; another process continues when the
/// lease has expired. If both believe they hold it, a step counts only for the one that finds the import
/// where it left it.
pub struct Runner {
    app: App,
    access: Access,
    import: ImportId,
    id: i64,
    /// The import after the last step.
    known: Option<Import>,
    window: Window,
    dry_run: Option<DryRun>,
}

impl Runner {
    pub fn new(app: &App, company: CompanyId, import: ImportId) -> Self {
        let id = i64::from_le_bytes(app.services().random());
        Self {
            app: app.clone(),
            access: Access::System(company),
            import,
            id,
            known: None,
            window: Window::default(),
            dry_run: None,
        }
    }

    /// The id the lease is held under.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The import as the last step left it.
    pub fn known(&self) -> Option<&Import> {
        self.known.as_ref()
    }

    pub async fn step(&mut self) -> Result<Stepped, Error> {
        let import = match self.known.take() {
            Some(known) => known,
            None => match self.look().await? {
                Some(found) => found,
                None => return Ok(Stepped::Ended),
            },
        };
        if !import.state.is_active() {
            self.known = Some(import);
            return Ok(Stepped::Ended);
        }
        if !import.may_take(self.id, self.app.now()) {
            return Ok(Stepped::Elsewhere);
        }
        let stepped = match import.state {
            State::Previewing => self.preview(import).await?,
            State::Undoing => undo::step(&self.app, &self.access, &import, self.id).await?,
            _ => self.run(import).await?,
        };
        // `None` means that another runner came in between; the next step checks again.
        let Some(import) = stepped else { return Ok(Stepped::More) };
        let is_active = import.state.is_active();
        self.known = Some(import);
        Ok(if is_active { Stepped::More } else { Stepped::Ended })
    }

    /// Releases the import, so that another runner need not wait for the lease to expire.
    pub async fn release(self) {
        let command = Release { id: self.import, runner: self.id };
        if let Err(error) = self.app.write(&self.access, command).await {
            crate::log_failure!(error, import = %self.import, "failed to release an import");
        }
    }

    async fn look(&self) -> Result<Option<Import>, Error> {
        let id = self.import;
        let read = self.app.read(&self.access, Needs::Server, move |snapshot, _| import::get(snapshot, id));
        Ok(read.await?.reply)
    }

    async fn lines(
        &mut self,
        import: &Import,
        at: Position,
        most: usize,
    ) -> Result<(Vec<Line>, Position), Error> {
        let batch = self.window.read((&self.app, &self.access), import, at, most).await?;
        let columns = import.column_names();
        let recipe = import.recipe(&columns);
        let read = |record: rapport_domain::import::reading::Record| Line {
            reading: recipe.interpret(&record),
            number: record.line,
            cells: record.cells,
        };
        Ok((batch.records.into_iter().map(read).collect(), batch.next))
    }

    async fn run(&mut self, import: Import) -> Result<Option<Import>, Error> {
        let (lines, to) = self.lines(&import, import.at, STEP_ROWS).await?;
        let step = Step { id: self.import, runner: self.id, from: import.at, to, lines: lines.into() };
        patiently(&self.app, &self.access, step).await
    }

    async fn preview(&mut self, import: Import) -> Result<Option<Import>, Error> {
        let mut dry_run = self.dry_run.take().unwrap_or_else(|| DryRun::new(&import));
        let (lines, to) = self.lines(&import, dry_run.at(), DryRun::STEP_ROWS).await?;
        let stepped = dry_run.step((&self.app, &self.access), &import, self.id, lines.into(), to).await?;
        if stepped.as_ref().is_some_and(|import| import.state == State::Previewing) {
            self.dry_run = Some(dry_run);
        }
        Ok(stepped)
    }
}

/// The runner stops, and another may continue the import immediately.
#[derive(Clone)]
pub struct Release {
    pub id: ImportId,
    pub runner: i64,
}

impl Command for Release {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        let Some(mut import) = import::lock(tx, self.id)? else { return Ok(()) };
        if import.lease.is_some_and(|lease| lease.runner == self.runner) {
            import.lease = None;
            import::update_progress(tx, &import)?;
        }
        Ok(())
    }
}

/// Some rows of an import, and the position of the next one.
#[derive(Clone)]
struct Step {
    id: ImportId,
    runner: i64,
    /// The position when these rows were read. If it has changed since, another runner was faster.
    from: Position,
    to: Position,
    lines: Arc<[Line]>,
}

impl Command for Step {
    type Reply = Option<Import>;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn weight(&self) -> usize {
        self.lines.len()
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Option<Import>, Error> {
        let Some(mut import) = import::lock(tx, self.id)? else { return Ok(None) };
        let is_there = import.state == State::Running && import.at == self.from;
        if !is_there || !import.may_take(self.runner, cx.now) {
            return Ok(None);
        }
        import.take(self.runner, cx.now);
        // The import acts on behalf of the person who started it.
        let cx = &cx.acting_as(import.actor.clone());
        let accounts = rapport_store::account::lock_by_imported_id(tx, &keys(&self.lines))?;
        let mut work = Work::over(tx, accounts, &self.lines)?;
        let mut applied = Applied { findings: std::mem::take(&mut import.findings), ..Applied::default() };
        let rules = Rules { import: &import, settings: cx.settings(), now: cx.now };
        let is_told = wants(cx, Kind::AccountUpdated);
        for line in self.lines.iter() {
            let before = work.account_of(line).filter(|_| is_told).cloned();
            let outcome = work.apply(line, rules, || cx.id());
            applied.note(cx, line, &work, &outcome);
            if let (Outcome::Updated(_), Some(before), Some(after)) =
                (&outcome, before, work.account_of(line))
            {
                applied.outbox.updated(cx, &before, after, Source::Import);
            }
        }
        write_accounts(tx, &work)?;
        addresses::write(tx, cx, &work.all())?;
        applied.outbox.write(tx, cx)?;
        if rows(&self.lines).any(|row| row.last_contact.is_some() || row.cadence.is_some()) {
            // An account may have become overdue.
            cx.wake_cadence(tx);
        }
        let accounts = note_changes(tx, &import, &work)?;
        let room = usize::try_from(MAX_KEPT_ERRORS - import.counts.failed).unwrap_or(0);
        applied.errors.truncate(room);
        import_data::insert_errors(tx, self.id, &applied.errors)?;
        let rows = i64::try_from(self.lines.len()).unwrap_or(0);
        import.findings = applied.findings;
        import.advance(self.to, rows, applied.counts, accounts, cx.now);
        import::update_progress(tx, &import)?;
        Ok(Some(import))
    }
}

/// The effects of the rows, besides the accounts themselves.
#[derive(Default)]
struct Applied {
    counts: Counts,
    findings: Findings,
    errors: Vec<ErrorRow>,
    outbox: Outbox,
}

impl Applied {
    fn note(&mut self, cx: &Context, line: &Line, work: &Work, outcome: &Outcome) {
        outcome.count(&mut self.counts);
        let is_new_code = work.unmatched_code(line).is_some_and(|code| self.findings.miss(code));
        self.counts.promo_codes_unmatched += i64::from(is_new_code);
        match (outcome, work.account_of(line)) {
            (Outcome::Created, Some(account)) => self.outbox.created(cx, account, Source::Import),
            (Outcome::Updated(Some(step)), Some(account)) => {
                self.outbox.moved(cx, account, *step, Source::Import, None);
            }
            (Outcome::Failed(failures), _) => {
                self.findings.fail(line.number, failures);
                let cells = json!(line.cells).to_string();
                self.errors.push(ErrorRow { line: line.number, cells, reason: in_words(failures) });
            }
            _ => {}
        }
    }
}

fn write_accounts(tx: &mut Tx, work: &Work) -> Result<(), rapport_store::Error> {
    let all = work.all();
    let new: Vec<&Account> = all.iter().filter(|known| known.is_new()).map(|known| &known.account).collect();
    if !rapport_store::account::insert(tx, &new)? {
        // Someone created one of them between our check and our insert.
        return Err(rapport_store::Error::Again);
    }
    let edits: Vec<Edit> = all
        .iter()
        .filter(|known| known.is_edited())
        .filter_map(|known| known.before.as_ref().map(|before| Edit { before, after: &known.account }))
        .collect();
    rapport_store::account::update(tx, &edits)?;
    let is_renamed = |edit: &&Edit| edit.before.name != edit.after.name;
    let renamed: Vec<&Account> = edits.iter().filter(is_renamed).map(|edit| edit.after).collect();
    rapport_store::account::replace_words_of(tx, &renamed)
}

/// Records what is needed to undo this; returns how many accounts were newly recorded.
fn note_changes(tx: &mut Tx, import: &Import, work: &Work) -> Result<i64, rapport_store::Error> {
    let all = work.all();
    let changed: Vec<AccountId> =
        all.iter().filter(|known| known.is_changed()).map(|known| known.account.id).collect();
    let earlier = import_data::changes_of(tx, import.id, &changed)?;
    let mut earlier: HashMap<AccountId, Changed> =
        earlier.into_iter().map(|change| (change.account, change)).collect();
    let mut fresh = Vec::new();
    let mut changes = Vec::new();
    for known in all.into_iter().filter(|known| known.is_new() || known.is_changed()) {
        let (account, mark) = (known.account.id, known.account.updated_at);
        let before = earlier.remove(&account);
        if before.is_none() {
            fresh.push((account, known.is_new()));
        }
        let now = differences(known);
        let (created, differences) = match (before, now) {
            (Some(first), Some(_)) if first.created => (true, first.differences),
            (Some(first), Some(now)) => (false, first.differences.then(now)),
            (_, Some(now)) => (false, now),
            (_, None) => (true, Differences::default()),
        };
        changes.push(Changed { account, created, mark, differences });
    }
    import_data::put_changes(tx, import.id, &changes)?;
    import_data::put_accounts(tx, import.id, &fresh)?;
    Ok(i64::try_from(fresh.len()).unwrap_or(0))
}

/// What rows changed in an account that was there before.
fn differences(known: &Known) -> Option<Differences> {
    let before = known.before.as_ref()?;
    Some(Differences::between(before, &known.account).with_emails(&known.added))
}
