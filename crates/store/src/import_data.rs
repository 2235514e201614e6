//! The data of imports: the file in pieces, the rows with errors, the changed accounts, the remembered
//! mappings and words; and their deletion.

use rapport_domain::account::Account;
use rapport_domain::difference::Differences;
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, ImportId};
use rapport_domain::import::status_word::{MAX_WORDS, StatusWords};
use rapport_domain::time::Time;

use crate::account::{read as read_account, select_account};
use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    company INSERT_CHUNK =
        "INSERT INTO import_chunk (company, import, number, bytes) VALUES ($1, $2, $3, $4)";
    company CHUNK = "SELECT bytes FROM import_chunk WHERE company = $1 AND import = $2 AND number = $3";
    company ERRORS = "SELECT line, cells, reason FROM import_error WHERE company = $1 AND import = $2 AND line > $3 \
                      ORDER BY line LIMIT $4";
    company CHANGES = "SELECT account, created, mark, differences FROM import_change \
                       WHERE company = $1 AND import = $2 AND account > $3 ORDER BY account LIMIT $4";
    // `coalesce` hides the import from planners: an account is in few imports, an import may have a million
    // accounts.
    company CHANGES_OF = "SELECT account, created, mark, differences FROM import_change \
                          /*INDEXED BY import_change_by_account*/ WHERE company = $1 AND coalesce(import, import) = $2 AND account = ANY($3)";
    company OF_ACCOUNT = "SELECT c.import, i.filename, c.created, c.differences, c.mark, i.undone_at, i.actor_kind, \
                          i.actor_id, i.actor_name FROM import_change c /*INDEXED BY import_change_by_account*/ \
                          JOIN import i ON i.company = c.company AND i.id = c.import \
                          WHERE c.company = $1 AND c.account = $2 AND c.import < $3 AND i.deleted_at IS NULL \
                          ORDER BY c.import DESC LIMIT $4";
    company DELETE_OF_ACCOUNT = "DELETE FROM import_change /*INDEXED BY import_change_by_account*/ \
                                 WHERE company = $1 AND account = $2";
    company BY_IMPORTED_ID = select_account!("WHERE a.company = $1 AND a.imported_id = ANY($2)");
    company SPOKEN_TO = "SELECT account FROM contact WHERE company = $1 AND account = ANY($2) \
                         UNION SELECT account FROM conversation /*INDEXED BY conversation_by_account*/ \
                         WHERE company = $1 AND account = ANY($2) \
                         UNION SELECT account FROM message /*INDEXED BY message_by_account*/ \
                         WHERE company = $1 AND account = ANY($2)";
    company MAPPING = "SELECT mapping FROM import_mapping WHERE company = $1 AND columns_mark = $2";
    company REMEMBER = "INSERT INTO import_mapping (company, columns_mark, mapping, used_at) VALUES ($1, $2, $3, $4) \
                        ON CONFLICT (company, columns_mark) DO UPDATE SET mapping = excluded.mapping, \
                        used_at = excluded.used_at";
    company WORDS = "SELECT word, meaning FROM import_word WHERE company = $1 ORDER BY used_at DESC, word LIMIT $2";
    company FORGET_WORDS = "DELETE FROM import_word WHERE company = $1 AND used_at < $2";
    company DELETE_ACCOUNT = "DELETE FROM import_account /*INDEXED BY import_account_by_account*/ \
                              WHERE company = $1 AND account = $2";
    // The values of rows that failed are kept as long as the rows.
    company FORGET_FINDINGS = "UPDATE import SET findings = '' WHERE company = $1 AND active = 0 AND finished_at < $2 \
                               AND findings <> ''";
    company WITH_SPENT_ACCOUNTS = "SELECT i.id FROM import i WHERE i.company = $1 AND i.deleted_at IS NOT NULL AND \
                                   (SELECT 1 FROM import_account c WHERE c.company = i.company AND c.import = i.id \
                                   LIMIT 1 OFFSET 0) IS NOT NULL LIMIT 1";
    company DELETE_ACCOUNTS = "DELETE FROM import_account WHERE company = $1 AND import = $2 AND (created, account) IN \
                               (SELECT created, account FROM import_account WHERE company = $1 AND import = $2 LIMIT $3)";
    company FORGET_MAPPINGS = "DELETE FROM import_mapping WHERE company = $1 AND used_at < $2";
    // Files are needed until their import ends; uploads that were never started are deleted along with them.
    company IDLE = "UPDATE import SET deleted_at = $3 WHERE company = $1 AND created_at < $2 AND started_at IS NULL \
                    AND active = 0 AND deleted_at IS NULL";
    company WITH_SPENT_CHUNKS = "SELECT i.id FROM import i WHERE i.company = $1 AND i.active = 0 \
                                 AND (i.deleted_at IS NOT NULL OR i.finished_at IS NOT NULL) AND \
                                 (SELECT 1 FROM import_chunk c WHERE c.company = i.company AND c.import = i.id \
                                 LIMIT 1 OFFSET 0) IS NOT NULL LIMIT 1";
    company WITH_OLD_ERRORS = "SELECT i.id FROM import i WHERE i.company = $1 AND i.active = 0 \
                               AND (i.deleted_at IS NOT NULL OR i.finished_at < $2) AND \
                               (SELECT 1 FROM import_error e WHERE e.company = i.company AND e.import = i.id \
                               LIMIT 1 OFFSET 0) IS NOT NULL LIMIT 1";
    company WITH_OLD_CHANGES = "SELECT i.id FROM import i WHERE i.company = $1 AND i.active = 0 \
                                AND (i.deleted_at IS NOT NULL OR i.finished_at < $2) AND \
                                (SELECT 1 FROM import_change c WHERE c.company = i.company AND c.import = i.id \
                                LIMIT 1 OFFSET 0) IS NOT NULL LIMIT 1";
    company DELETE_CHUNKS = "DELETE FROM import_chunk WHERE company = $1 AND import = $2 AND number IN \
                             (SELECT number FROM import_chunk WHERE company = $1 AND import = $2 LIMIT $3)";
    company DELETE_ERRORS = "DELETE FROM import_error WHERE company = $1 AND import = $2 AND line IN \
                             (SELECT line FROM import_error WHERE company = $1 AND import = $2 LIMIT $3)";
    company DELETE_CHANGES = "DELETE FROM import_change WHERE company = $1 AND import = $2 AND account IN \
                              (SELECT account FROM import_change WHERE company = $1 AND import = $2 LIMIT $3)";
    company DELETE_EMPTY = "DELETE FROM import WHERE company = $1 AND deleted_at IS NOT NULL AND \
                            (SELECT 1 FROM import_chunk c WHERE c.company = import.company \
                            AND c.import = import.id LIMIT 1 OFFSET 0) IS NULL AND \
                            (SELECT 1 FROM import_error e WHERE e.company = import.company \
                            AND e.import = import.id LIMIT 1 OFFSET 0) IS NULL AND \
                            (SELECT 1 FROM import_change c WHERE c.company = import.company \
                            AND c.import = import.id LIMIT 1 OFFSET 0) IS NULL AND \
                            (SELECT 1 FROM import_account c WHERE c.company = import.company \
                            AND c.import = import.id LIMIT 1 OFFSET 0) IS NULL";
}

/// The size of every piece of a file but the last.
pub const CHUNK_BYTES: usize = 256 << 10;

pub(crate) static INSERT_ERRORS: InsertMany = InsertMany::new(
    "import_error",
    &[("import", Type::Bytes), ("line", Type::Int), ("cells", Type::Text), ("reason", Type::Text)],
    "ON CONFLICT (company, import, line) DO NOTHING",
);

pub(crate) static PUT_CHANGES: InsertMany = InsertMany::new(
    "import_change",
    &[
        ("import", Type::Bytes),
        ("account", Type::Bytes),
        ("created", Type::Int),
        ("mark", Type::Int),
        ("differences", Type::Text),
    ],
    "ON CONFLICT (company, import, account) DO UPDATE SET mark = excluded.mark, \
     differences = excluded.differences",
);

pub(crate) static PUT_ACCOUNTS: InsertMany = InsertMany::new(
    "import_account",
    &[("import", Type::Bytes), ("created", Type::Int), ("account", Type::Bytes)],
    "ON CONFLICT (company, import, created, account) DO NOTHING",
);

pub(crate) static PUT_WORDS: InsertMany = InsertMany::new(
    "import_word",
    &[("word", Type::Text), ("meaning", Type::Text), ("used_at", Type::Int)],
    "ON CONFLICT (company, word) DO UPDATE SET meaning = excluded.meaning, used_at = excluded.used_at",
);

/// A row that couldn't be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorRow {
    pub line: i64,
    /// A JSON array of strings.
    pub cells: String,
    pub reason: String,
}

/// An account that an import created or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub account: AccountId,
    pub created: bool,
    /// The account's `updated_at` as the import left it.
    pub mark: Time,
    pub differences: Differences,
}

pub fn insert_chunk(tx: &mut Tx, import: ImportId, number: i64, bytes: &[u8]) -> Result<(), Error> {
    tx.execute(&INSERT_CHUNK, values![&import, number, bytes])?;
    Ok(())
}

pub fn chunk(snapshot: &mut Snapshot, import: ImportId, number: i64) -> Result<Option<Vec<u8>>, Error> {
    snapshot.query_opt(&CHUNK, values![&import, number])?.map(|mut row| row.take()).transpose()
}

pub fn insert_errors(tx: &mut Tx, import: ImportId, errors: &[ErrorRow]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(errors.len() * INSERT_ERRORS.width());
    for error in errors {
        rows.extend::<[Value; 4]>([
            (&import).into(),
            error.line.into(),
            (&error.cells).into(),
            (&error.reason).into(),
        ]);
    }
    tx.insert(&INSERT_ERRORS, &rows)?;
    Ok(())
}

/// The rows with errors, in the order of the file, after a line.
pub fn errors(
    snapshot: &mut Snapshot,
    import: ImportId,
    after_line: i64,
    limit: i64,
) -> Result<Vec<ErrorRow>, Error> {
    let rows = snapshot.query(&ERRORS, values![&import, after_line, limit])?;
    let read = |mut row: Row| Ok(ErrorRow { line: row.take()?, cells: row.take()?, reason: row.take()? });
    rows.into_iter().map(read).collect()
}

/// Records changes; replaces earlier ones of the same account.
pub fn put_changes(tx: &mut Tx, import: ImportId, changes: &[Changed]) -> Result<(), Error> {
    let texts: Vec<String> = changes.iter().map(|change| change.differences.to_stored()).collect();
    let mut rows = Vec::with_capacity(changes.len() * PUT_CHANGES.width());
    for (change, differences) in changes.iter().zip(&texts) {
        rows.extend::<[Value; 5]>([
            (&import).into(),
            (&change.account).into(),
            change.created.into(),
            change.mark.into(),
            differences.into(),
        ]);
    }
    tx.insert(&PUT_CHANGES, &rows)?;
    Ok(())
}

/// Records the accounts that an import touched for the first time, and whether it created them.
pub fn put_accounts(tx: &mut Tx, import: ImportId, accounts: &[(AccountId, bool)]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(accounts.len() * PUT_ACCOUNTS.width());
    for (account, created) in accounts {
        rows.extend::<[Value; 3]>([(&import).into(), (*created).into(), account.into()]);
    }
    tx.insert(&PUT_ACCOUNTS, &rows)?;
    Ok(())
}

/// The changes of an import, ordered by account, after a given account.
pub fn changes(
    snapshot: &mut Snapshot,
    import: ImportId,
    after: Option<AccountId>,
    limit: i64,
) -> Result<Vec<Changed>, Error> {
    let after = after.as_ref().map_or(&[][..], |account| account.as_bytes().as_slice());
    snapshot.query(&CHANGES, values![&import, after, limit])?.into_iter().map(read_change).collect()
}

/// The changes that an import has made to these accounts so far.
pub fn changes_of(
    snapshot: &mut Snapshot,
    import: ImportId,
    accounts: &[AccountId],
) -> Result<Vec<Changed>, Error> {
    let keys: Vec<Value> = accounts.iter().map(Value::from).collect();
    snapshot.query_keys(&CHANGES_OF, values![&import], &keys)?.into_iter().map(read_change).collect()
}

/// The effect of an import on one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    pub import: ImportId,
    pub filename: String,
    pub created: bool,
    pub differences: Differences,
    pub at: Time,
    pub undone_at: Option<Time>,
    pub actor: Actor,
}

/// The imports that created or changed an account, latest first, before a given one.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: ImportId,
    limit: i64,
) -> Result<Page<Touch>, Error> {
    let rows = snapshot.query(&OF_ACCOUNT, values![&account, &before, limit + 1])?;
    let touches = rows.into_iter().map(read_touch).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(touches, limit))
}

fn read_touch(mut row: Row) -> Result<Touch, Error> {
    let row = &mut row;
    Ok(Touch {
        import: row.take()?,
        filename: row.take()?,
        created: row.take()?,
        differences: Differences::from_stored(&row.take::<String>()?),
        at: row.take()?,
        undone_at: row.take()?,
        actor: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
    })
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<u64, Error> {
    tx.execute(&DELETE_ACCOUNT, values![&account])?;
    tx.execute(&DELETE_OF_ACCOUNT, values![&account])
}

fn read_change(mut row: Row) -> Result<Changed, Error> {
    Ok(Changed {
        account: row.take()?,
        created: row.take()?,
        mark: row.take()?,
        differences: Differences::from_stored(&row.take::<String>()?),
    })
}

/// The accounts with these imported_ids, for reading only: not locked.
pub fn accounts(snapshot: &mut Snapshot, imported_ids: &[&str]) -> Result<Vec<Account>, Error> {
    let keys: Vec<Value> = imported_ids.iter().map(|id| Value::from(*id)).collect();
    snapshot.query_keys(&BY_IMPORTED_ID, &[], &keys)?.into_iter().map(read_account).collect()
}

/// The accounts among these that have a contact, a conversation or a message.
pub fn spoken_to(snapshot: &mut Snapshot, accounts: &[AccountId]) -> Result<Vec<AccountId>, Error> {
    let keys: Vec<Value> = accounts.iter().map(Value::from).collect();
    snapshot.query_keys(&SPOKEN_TO, &[], &keys)?.into_iter().map(|mut row| row.take()).collect()
}

/// The remembered mapping for these columns, as JSON.
pub fn remembered(snapshot: &mut Snapshot, mark: &[u8; 32]) -> Result<Option<String>, Error> {
    snapshot.query_opt(&MAPPING, values![mark.as_slice()])?.map(|mut row| row.take()).transpose()
}

pub fn remember(tx: &mut Tx, mark: &[u8; 32], mapping: &str, now: Time) -> Result<(), Error> {
    tx.execute(&REMEMBER, values![mark.as_slice(), mapping, now])?;
    Ok(())
}

/// The stages that the company chose for words, those used last first.
pub fn words(snapshot: &mut Snapshot) -> Result<StatusWords, Error> {
    let most = i64::try_from(MAX_WORDS).unwrap_or(i64::MAX);
    let rows = snapshot.query(&WORDS, values![most])?.into_iter();
    let pairs = rows.map(|mut row| Ok((row.take()?, row.take()?)));
    Ok(StatusWords::from_pairs(pairs.collect::<Result<Vec<(String, String)>, Error>>()?))
}

pub fn remember_words(tx: &mut Tx, words: &StatusWords, now: Time) -> Result<(), Error> {
    let mut rows = Vec::new();
    for (word, meaning) in words.pairs() {
        rows.extend::<[Value; 3]>([word.into(), meaning.as_str().into(), now.into()]);
    }
    tx.insert(&PUT_WORDS, &rows)?;
    Ok(())
}

/// The times before which data is deleted.
#[derive(Debug, Clone, Copy)]
pub struct Cutoffs {
    /// For imports that were never started, by when they were created.
    pub idle: Time,
    /// For the errors and the undo data of imports, by when they ended.
    pub ended: Time,
    /// For mappings and words, by when they were last used.
    pub mapping: Time,
    pub now: Time,
}

/// Deletes some expired data; returns whether there may be more.
pub fn prune(tx: &mut Tx, cutoffs: Cutoffs, limit: i64) -> Result<bool, Error> {
    /// A piece is as much work as many rows.
    const CHUNKS: i64 = 4;
    tx.execute(&IDLE, values![cutoffs.idle, cutoffs.now])?;
    tx.execute(&FORGET_FINDINGS, values![cutoffs.ended])?;
    if let Some(import) = first(tx.query_opt(&WITH_SPENT_CHUNKS, &[])?)? {
        tx.execute(&DELETE_CHUNKS, values![&import, CHUNKS])?;
        return Ok(true);
    }
    if let Some(import) = first(tx.query_opt(&WITH_OLD_ERRORS, values![cutoffs.ended])?)? {
        tx.execute(&DELETE_ERRORS, values![&import, limit])?;
        return Ok(true);
    }
    if let Some(import) = first(tx.query_opt(&WITH_OLD_CHANGES, values![cutoffs.ended])?)? {
        tx.execute(&DELETE_CHANGES, values![&import, limit])?;
        return Ok(true);
    }
    if let Some(import) = first(tx.query_opt(&WITH_SPENT_ACCOUNTS, &[])?)? {
        tx.execute(&DELETE_ACCOUNTS, values![&import, limit])?;
        return Ok(true);
    }
    tx.execute(&DELETE_EMPTY, &[])?;
    tx.execute(&FORGET_MAPPINGS, values![cutoffs.mapping])?;
    tx.execute(&FORGET_WORDS, values![cutoffs.mapping])?;
    Ok(false)
}

fn first(row: Option<Row>) -> Result<Option<ImportId>, Error> {
    row.map(|mut row| row.take()).transpose()
}
