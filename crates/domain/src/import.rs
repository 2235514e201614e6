//! An import: a CSV file of accounts, from the upload through a dry run to the last row, and its undo.
//!
//! `charset` and `reading` turn bytes into records, `head` and `mapping` describe the columns, `format` how
//! their numbers and dates are written, `status_word` which stage a word means, `row` applies a record to an
//! account, `failure` groups the rows that can't be applied, and `difference` records what changed and how to
//! revert it. `request` checks a request against the file. This file has the import itself: its states, the
//! transitions between them, and its progress.

pub mod cell;
pub mod charset;
pub mod date;
pub mod failure;
pub mod format;
pub mod head;
pub mod mapping;
pub mod number;
pub mod preview;
pub mod reading;
pub mod request;
pub mod row;
pub mod status_word;

use serde_json::Value;

use self::charset::Charset;
use self::failure::Findings;
use self::format::Format;
use self::head::{Column, Head};
use self::mapping::{Mapping, Target};
use self::reading::{Delimiter, Layout, Position, Record};
pub use self::request::{Plan, Request};
use self::row::Recipe;
use self::status_word::StatusWords;
use crate::history::Actor;
use crate::id::{AccountId, ImportId};
use crate::invalid::Fault;
use crate::schema::words;
use crate::text::Length;
use crate::time::Time;

pub const MAX_FILENAME: Length = Length::up_to(255);
/// Rows per transaction.
pub const STEP_ROWS: usize = 200;
/// How long an import can be undone after it ended; then its undo data and its error file are deleted.
pub const UNDO_DAYS: i64 = 30;
/// How long an upload is kept if nobody starts it.
pub const IDLE_DAYS: i64 = 7;
/// How long an unused mapping is remembered.
pub const MAPPING_DAYS: i64 = 365;
/// How many invalid rows are kept for the error file; the rest are only counted.
pub const MAX_KEPT_ERRORS: i64 = 100_000;
/// How many open imports a company may have.
pub const MAX_OPEN: i64 = 20;
/// How many differences and errors a dry run shows.
pub const SHOWN: usize = 20;
/// A process that hasn't renewed its lease on an import for this long is presumed dead, and another takes
/// over.
pub const LEASE_SECONDS: i64 = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The file is being uploaded.
    Uploading,
    /// The file is uploaded, and nothing is running.
    Uploaded,
    Previewing,
    Running,
    Finished,
    Cancelled,
    Undoing,
    Undone,
}

impl State {
    pub const ALL: [Self; 8] = [
        Self::Uploading,
        Self::Uploaded,
        Self::Previewing,
        Self::Running,
        Self::Finished,
        Self::Cancelled,
        Self::Undoing,
        Self::Undone,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uploading => "uploading",
            Self::Uploaded => "uploaded",
            Self::Previewing => "previewing",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Undoing => "undoing",
            Self::Undone => "undone",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether a process has to work on it.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Previewing | Self::Running | Self::Undoing)
    }
}

words!(State, "ImportState", "The state of an import. `uploaded` means that it can be tried or started.");

/// What rows may do to accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    Create,
    Update,
    #[default]
    Both,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Both];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Both => "both",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| Fault::not_one_of("unknown_mode", Self::ALL.map(Self::as_str)))
    }

    pub const fn creates(self) -> bool {
        matches!(self, Self::Create | Self::Both)
    }

    pub const fn updates(self) -> bool {
        matches!(self, Self::Update | Self::Both)
    }
}

words!(Mode, "ImportMode", "Whether rows may create accounts, update existing ones, or both.");

/// The results of the rows so far.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize, utoipa::ToSchema,
)]
#[schema(as = ImportCounts)]
pub struct Counts {
    pub created: i64,
    pub updated: i64,
    pub unchanged: i64,
    /// Blank rows, and rows that the mode excludes.
    pub skipped: i64,
    pub failed: i64,
    /// The different promo codes that don't match an active code of the company, up to 1,000. Their rows were imported
    /// anyway.
    pub promo_codes_unmatched: i64,
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.created += other.created;
        self.updated += other.updated;
        self.unchanged += other.unchanged;
        self.skipped += other.skipped;
        self.failed += other.failed;
        self.promo_codes_unmatched += other.promo_codes_unmatched;
    }
}

/// The progress of an undo, in accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Undo {
    /// The last account processed.
    pub after: Option<AccountId>,
    pub done: i64,
    /// Accounts whose fields were all restored.
    pub restored: i64,
    /// Created accounts that were removed again.
    pub removed: i64,
    /// Accounts that keep some changes because someone has edited them since.
    pub kept: i64,
}

/// The process that runs an import, and until when it is presumed alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub runner: i64,
    pub until: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub id: ImportId,
    pub filename: String,
    pub state: State,
    /// The size of the file as stored.
    pub bytes: i64,
    pub charset: Charset,
    pub delimiter: Delimiter,
    pub columns: Vec<Column>,
    pub mapping: Mapping,
    /// The mapping is the one used the last time these columns were imported.
    pub remembered: bool,
    /// How the numbers and dates of each column are written, for the columns that have a format.
    pub formats: Vec<Option<Format>>,
    /// The stages that were chosen for words, now or in an earlier import.
    pub words: StatusWords,
    pub mode: Mode,
    /// Where the rows begin, and where the next one is.
    pub data: Position,
    pub at: Position,
    pub rows_done: i64,
    /// Known after a complete dry run.
    pub rows_total: Option<i64>,
    pub counts: Counts,
    /// Accounts that it created or changed.
    pub accounts: i64,
    /// The rows that failed by reason, and the promo codes that didn't match.
    pub findings: Findings,
    /// The result of the last dry run.
    pub preview: Option<Value>,
    pub undo: Undo,
    /// Who started it.
    pub actor: Actor,
    pub lease: Option<Lease>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub finished_at: Option<Time>,
    pub undone_at: Option<Time>,
}

/// Why an import can't do this in its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotNow {
    pub code: &'static str,
    pub detail: String,
}

impl Import {
    pub fn new(id: ImportId, filename: String, actor: Actor, now: Time) -> Self {
        Self {
            id,
            filename,
            state: State::Uploading,
            bytes: 0,
            charset: Charset::UTF_8,
            delimiter: Delimiter::COMMA,
            columns: Vec::new(),
            mapping: Mapping::default(),
            remembered: false,
            formats: Vec::new(),
            words: StatusWords::default(),
            mode: Mode::Both,
            data: Position::default(),
            at: Position::default(),
            rows_done: 0,
            rows_total: None,
            counts: Counts::default(),
            accounts: 0,
            findings: Findings::default(),
            preview: None,
            undo: Undo::default(),
            actor,
            lease: None,
            created_at: now,
            started_at: None,
            finished_at: None,
            undone_at: None,
        }
    }

    pub fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// How its rows are read. `columns` are its column names.
    pub fn recipe<'a>(&'a self, columns: &'a [&'a str]) -> Recipe<'a> {
        Recipe { columns, mapping: &self.mapping, formats: &self.formats, words: &self.words }
    }

    /// The number of the column that is imported into a field.
    pub fn column_of(&self, field: &str) -> Option<usize> {
        self.mapping.0.iter().position(|target| *target != Target::Ignore && target.as_text() == field)
    }

    /// How many of its accounts existed before.
    pub fn changed_accounts(&self) -> i64 {
        (self.accounts - self.counts.created).max(0)
    }

    pub fn layout(&self) -> Layout {
        Layout { charset: self.charset, delimiter: self.delimiter, columns: self.columns.len() }
    }

    /// The first records, as far as they are in the first part of the file.
    pub fn first_rows(&self, first: &[u8], most: usize) -> Vec<Record> {
        request::rows(self, first, (self.layout(), self.data), most)
    }

    /// The values of each column in the first part of the file, without empty cells.
    pub fn first_values(&self, first: &[u8]) -> Vec<Vec<String>> {
        request::values(&self.first_rows(first, request::JUDGED_ROWS), self.columns.len())
    }

    /// An import that is changing accounts must finish or be cancelled first.
    pub fn may_be_removed(&self) -> bool {
        !matches!(self.state, State::Running | State::Undoing)
    }

    /// Until when it can be undone, if at all.
    pub fn undo_until(&self) -> Option<Time> {
        self.finished_at.filter(|_| matches!(self.state, State::Finished | State::Cancelled)).map(undo_until)
    }

    pub fn is_at_the_end(&self) -> bool {
        self.at.offset >= self.bytes
    }

    /// Records that the file is uploaded, and what it looks like.
    pub fn arrive(&mut self, bytes: i64, charset: Charset, head: Head) {
        self.state = State::Uploaded;
        self.bytes = bytes;
        self.charset = charset;
        self.lay_out(head);
        self.mapping = Mapping::guess(self.column_names());
    }

    fn lay_out(&mut self, head: Head) {
        self.delimiter = head.delimiter;
        self.columns = head.columns;
        self.formats = Vec::new();
        (self.data, self.at) = (head.data, head.data);
    }

    /// Reads the file with another encoding or delimiter. The columns may change, so choices made for them
    /// are reset.
    pub fn read_again(&mut self, charset: Charset, head: Head) -> Result<(), NotNow> {
        self.require_rest()?;
        self.charset = charset;
        self.lay_out(head);
        self.mapping = Mapping::guess(self.column_names());
        self.remembered = false;
        (self.preview, self.rows_total) = (None, None);
        Ok(())
    }

    fn require_rest(&self) -> Result<(), NotNow> {
        if self.state == State::Uploaded {
            return Ok(());
        }
        let rule = "it can be edited, previewed or started only in the uploaded state";
        Err(self.not_now("not_uploaded", rule))
    }

    /// Prepares for a dry run or the real run.
    pub fn plan(&mut self, plan: Plan) -> Result<(), NotNow> {
        self.require_rest()?;
        let Plan { charset, head, mapping, formats, words, mode } = plan;
        self.charset = charset;
        self.lay_out(head);
        self.mapping = mapping;
        self.formats = formats;
        self.words = words;
        self.mode = mode;
        self.at = self.data;
        self.rows_done = 0;
        self.counts = Counts::default();
        self.findings = Findings::default();
        Ok(())
    }

    pub fn begin_preview(&mut self) {
        self.state = State::Previewing;
        self.preview = None;
        self.rows_total = None;
    }

    /// Ends the dry run: the real one can begin at the first row.
    pub fn finish_preview(&mut self, found: Value) {
        self.state = State::Uploaded;
        self.preview = Some(found);
        self.rows_total = Some(self.rows_done);
        self.rows_done = 0;
        self.at = self.data;
        self.lease = None;
    }

    pub fn begin_run(&mut self, actor: Actor, now: Time) {
        self.state = State::Running;
        self.actor = actor;
        self.started_at = Some(now);
    }

    /// Records a step of the real run.
    pub fn advance(&mut self, to: Position, rows: i64, counts: Counts, accounts: i64, now: Time) {
        self.at = to;
        self.rows_done += rows;
        self.counts.add(counts);
        self.accounts += accounts;
        if self.is_at_the_end() {
            self.state = State::Finished;
            self.rows_total = Some(self.rows_done);
            self.finished_at = Some(now);
            self.lease = None;
        }
    }

    /// Stops what is running; returns `false` if nothing is.
    pub fn cancel(&mut self, now: Time) -> bool {
        match self.state {
            State::Running => {
                self.state = State::Cancelled;
                self.finished_at = Some(now);
            }
            State::Previewing => {
                self.state = State::Uploaded;
                self.rows_done = 0;
                self.at = self.data;
            }
            _ => return false,
        }
        self.lease = None;
        true
    }

    pub fn begin_undo(&mut self, now: Time) -> Result<(), NotNow> {
        let ended = self.finished_at.filter(|_| matches!(self.state, State::Finished | State::Cancelled));
        let Some(ended) = ended else {
            return Err(self.not_now("not_ended", "only a finished or cancelled import can be undone"));
        };
        if now > undo_until(ended) {
            let detail = format!("an import can only be undone within {UNDO_DAYS} days");
            return Err(NotNow { code: "undo_expired", detail });
        }
        self.state = State::Undoing;
        self.undo = Undo::default();
        Ok(())
    }

    pub fn finish_undo(&mut self, now: Time) {
        self.state = State::Undone;
        self.undone_at = Some(now);
        self.lease = None;
    }

    /// Whether this process may work on it: it already does, or no live process does.
    pub fn may_take(&self, runner: i64, now: Time) -> bool {
        self.lease.is_none_or(|lease| lease.runner == runner || lease.until <= now)
    }

    pub fn take(&mut self, runner: i64, now: Time) {
        self.lease = Some(Lease { runner, until: now.plus_seconds(LEASE_SECONDS) });
    }

    fn not_now(&self, code: &'static str, rule: &str) -> NotNow {
        NotNow { code, detail: format!("the import is {}: {rule}", self.state.as_str()) }
    }
}

fn undo_until(ended: Time) -> Time {
    ended.plus_days(UNDO_DAYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invalid::Invalid;
    use serde_json::json;

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);
    const FILE: &[u8] = b"id;name\n1;Acme\n";

    fn uploaded() -> Import {
        let mut import = Import::new(ImportId::from_bytes([1; 16]), "a.csv".into(), Actor::CommandLine, NOW);
        let head = Head::of(FILE, true, Charset::UTF_8, None).unwrap();
        import.arrive(i64::try_from(FILE.len()).unwrap(), Charset::UTF_8, head);
        import
    }

    fn request(body: Value) -> Result<Request, Invalid> {
        Request::parse(body.as_object().unwrap())
    }

    #[test]
    fn a_file_can_be_read_in_another_way_while_nothing_runs() {
        let mut import = uploaded();
        import.finish_preview(json!({}));
        let request = Request { delimiter: Some(Delimiter::COMMA), ..Request::default() };
        let (charset, head) = request.layout(&import, FILE).unwrap();
        import.read_again(charset, head.clone()).unwrap();
        assert_eq!((import.column_names(), &import.preview), (vec!["id;name"], &None));
        import.begin_run(Actor::System, NOW);
        assert_eq!(import.read_again(charset, head).unwrap_err().code, "not_uploaded");
    }

    #[test]
    fn the_first_rows_are_the_files() {
        let rows = uploaded().first_rows(FILE, 5);
        assert_eq!(rows.into_iter().map(|row| row.cells).collect::<Vec<_>>(), [["1", "Acme"]]);
    }

    #[test]
    fn an_import_goes_from_upload_to_undo() {
        let mut import = uploaded();
        assert_eq!(import.begin_undo(NOW).unwrap_err().code, "not_ended");
        import.plan(Request::default().plan(&import, FILE).unwrap()).unwrap();
        import.begin_run(Actor::System, NOW);
        assert_eq!(
            import.plan(Request::default().plan(&import, FILE).unwrap()).unwrap_err().code,
            "not_uploaded"
        );
        let counts = Counts { created: 1, ..Counts::default() };
        import.advance(Position { offset: import.bytes, line: 3 }, 1, counts, 1, NOW);
        assert_eq!((import.state, import.rows_total, import.counts), (State::Finished, Some(1), counts));
        assert!(!import.cancel(NOW));
        let late = NOW.plus_days(UNDO_DAYS).plus_seconds(1);
        assert_eq!(import.clone().begin_undo(late).unwrap_err().code, "undo_expired");
        import.begin_undo(NOW.plus_days(UNDO_DAYS)).unwrap();
        assert_eq!(import.begin_undo(NOW).unwrap_err().code, "not_ended");
        import.finish_undo(NOW);
        assert_eq!((import.state, import.undone_at), (State::Undone, Some(NOW)));
    }

    #[test]
    fn one_process_at_a_time_works_on_it() {
        let mut import = uploaded();
        assert!(import.may_take(1, NOW));
        import.take(1, NOW);
        assert!(import.may_take(1, NOW) && !import.may_take(2, NOW));
        assert!(import.may_take(2, NOW.plus_seconds(LEASE_SECONDS)), "the first process is presumed dead");
    }

    #[test]
    fn a_request_is_checked_against_the_file() {
        let import = uploaded();
        assert_eq!(import.mapping, Mapping::guess(["id", "name"]));
        let plan = request(json!({"mapping": {"id": "imported_id"}, "mode": "update"})).unwrap();
        let plan = plan.plan(&import, FILE).unwrap();
        assert_eq!((plan.mode, plan.mapping.0.len()), (Mode::Update, 2));
        let code = |body: Value| request(body).unwrap().plan(&import, FILE).unwrap_err().0[0].code;
        assert_eq!(code(json!({"mapping": {"nope": "name"}})), "unknown_column");
        assert_eq!(code(json!({"mapping": {"name": "name"}, "mode": "update"})), "incomplete");
        assert_eq!(code(json!({"encoding": "utf-16le"})), "already_converted");
        let relaid = request(json!({"delimiter": ",", "encoding": "latin1"})).unwrap().plan(&import, FILE);
        assert_eq!(relaid.unwrap_err().0[0].code, "incomplete", "the only column is not a name");
        let faults = request(json!({"mode": "all", "mapping": [], "delimiter": "", "x": 1})).unwrap_err();
        assert_eq!(faults.0.len(), 4);
    }

    #[test]
    fn cancelling_stops_the_run() {
        let mut import = uploaded();
        assert!(!import.cancel(NOW));
        import.begin_preview();
        assert!(import.cancel(NOW));
        assert_eq!(import.state, State::Uploaded);
        import.begin_run(Actor::System, NOW);
        assert!(import.cancel(NOW));
        assert_eq!((import.state, import.finished_at), (State::Cancelled, Some(NOW)));
        assert!(import.begin_undo(NOW).is_ok(), "the rows imported so far can be undone");
    }
}
