//! Accounts: looked up by id or imported_id, locked before a decision, written in bulk.

use rapport_domain::account::Account;
use rapport_domain::channel::{ChannelRef, PromoCode};
use rapport_domain::custom_fields::CustomFields;
use rapport_domain::id::{AccountId, ChannelId};
use rapport_domain::money::{Amount, Currency, Money};
use rapport_domain::search::words_of;
use rapport_domain::text::fold;
use rapport_domain::time::Time;
use rapport_domain::tombstone::Tombstone;

use crate::error::Error;
use crate::statement::{InsertMany, UpdateMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::{
    account_address, account_field, account_site, activity, bulk_change, cadence, contact, conversation,
    correction, history, import_data, mail_reference, message, note, sample, tombstone, values,
};

/// The columns of an account in the order that `read` takes them.
macro_rules! select_account {
    ($rest:literal) => {
        concat!(
            "SELECT a.id, a.imported_id, a.name, a.status, a.custom_fields, a.value_amount, a.value_currency, ",
            "a.promo_code, a.channel, c.name, a.acquired_at, a.last_contact_at, a.imported_contact_at, ",
            "s.first_seen_at, s.last_seen_at, ",
            "a.cadence_days, a.snoozed_until, a.tracked_since, a.campaign_hold, a.sample, a.created_at, ",
            "a.updated_at ",
            "FROM account a ",
            "LEFT JOIN channel c ON c.company = a.company AND c.id = a.channel ",
            "LEFT JOIN account_seen s ON s.company = a.company AND s.account = a.id ",
            $rest
        )
    };
}
pub(crate) use select_account;

statements! {
    company GET = select_account!("WHERE a.company = $1 AND a.id = $2");
    company LOCK_BY_ID =
        select_account!("WHERE a.company = $1 AND a.id = ANY($2) ORDER BY a.id FOR UPDATE OF a");
    company LOCK_BY_IMPORTED_ID =
        select_account!("WHERE a.company = $1 AND a.imported_id = ANY($2) ORDER BY a.id FOR UPDATE OF a");
    company ID_BY_IMPORTED_ID = "SELECT imported_id, id FROM account WHERE company = $1 AND imported_id = ANY($2)";
    company DELETED = "SELECT imported_id, sample FROM account WHERE company = $1 AND id = $2";
    company EXISTING = "SELECT id FROM account WHERE company = $1 AND id = ANY($2)";
    company IMPORTED_ID_TAKEN = "SELECT id FROM account WHERE company = $1 AND imported_id = $2 AND id <> $3";
    company DELETE = "DELETE FROM account WHERE company = $1 AND id = $2";
    company DELETE_WORDS = "DELETE FROM account_word WHERE company = $1 AND account = $2";
    company DELETE_WORDS_OF = "DELETE FROM account_word WHERE company = $1 AND account = ANY($2)";
}

const COLUMNS: &[(&str, Type)] = &[
    ("imported_id", Type::Text),
    ("name", Type::Text),
    ("name_folded", Type::Text),
    ("status", Type::Text),
    ("custom_fields", Type::Text),
    ("value_amount", Type::Int),
    ("value_currency", Type::Text),
    ("channel", Type::Bytes),
    ("promo_code", Type::Text),
    ("acquired_at", Type::Int),
    ("last_contact_at", Type::Int),
    ("cadence_days", Type::Int),
    ("snoozed_until", Type::Text),
    ("tracked_since", Type::Int),
    ("campaign_hold", Type::Int),
    ("updated_at", Type::Int),
];

const INSERT_COLUMNS: &[(&str, Type)] = &[
    ("id", Type::Bytes),
    ("created_at", Type::Int),
    COLUMNS[0],
    COLUMNS[1],
    COLUMNS[2],
    COLUMNS[3],
    COLUMNS[4],
    COLUMNS[5],
    COLUMNS[6],
    COLUMNS[7],
    COLUMNS[8],
    COLUMNS[9],
    COLUMNS[10],
    COLUMNS[11],
    COLUMNS[12],
    COLUMNS[13],
    COLUMNS[14],
    COLUMNS[15],
];

pub(crate) static INSERT: InsertMany =
    InsertMany::logged("account", INSERT_COLUMNS, "ON CONFLICT (company, imported_id) DO NOTHING");

pub(crate) static UPDATE: UpdateMany = UpdateMany::logged("account", &[("id", Type::Bytes)], COLUMNS);

/// Apart from the others, because only imports change it.
pub(crate) static SET_IMPORTED_CONTACT: UpdateMany =
    UpdateMany::new("account", &[("id", Type::Bytes)], &[("imported_contact_at", Type::Int)]);

/// Of accounts that have none.
pub(crate) static INSERT_WORDS: InsertMany =
    InsertMany::new("account_word", &[("word", Type::Text), ("account", Type::Bytes)], "");

/// A change of an account, to be written back.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// The account as it was when it was locked. Only what differs from it is written to the index rows.
    pub before: &'a Account,
    pub after: &'a Account,
}

/// The accounts with these ids that exist, in the order of the ids.
pub fn some(snapshot: &mut Snapshot, ids: &[AccountId]) -> Result<Vec<Account>, Error> {
    crate::account_list::load(snapshot, ids)
}

pub fn get(snapshot: &mut Snapshot, id: AccountId) -> Result<Option<Account>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

/// The accounts with these ids, locked in key order.
pub fn lock(tx: &mut Tx, ids: &[AccountId]) -> Result<Vec<Account>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    tx.query_keys(&LOCK_BY_ID, &[], &keys)?.into_iter().map(read).collect()
}

/// The accounts with these imported_ids, locked in key order.
pub fn lock_by_imported_id(tx: &mut Tx, imported_ids: &[&str]) -> Result<Vec<Account>, Error> {
    let keys: Vec<Value> = imported_ids.iter().map(|id| Value::from(*id)).collect();
    tx.query_keys(&LOCK_BY_IMPORTED_ID, &[], &keys)?.into_iter().map(read).collect()
}

/// The ids of the accounts with these imported_ids, without loading the accounts.
pub fn ids_by_imported_id(
    snapshot: &mut Snapshot,
    imported_ids: &[&str],
) -> Result<Vec<(String, AccountId)>, Error> {
    let keys: Vec<Value> = imported_ids.iter().map(|id| Value::from(*id)).collect();
    let rows = snapshot.query_keys(&ID_BY_IMPORTED_ID, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Which of these ids exist.
pub fn existing(snapshot: &mut Snapshot, ids: &[AccountId]) -> Result<Vec<AccountId>, Error> {
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    snapshot.query_keys(&EXISTING, &[], &keys)?.into_iter().map(|mut row| row.take()).collect()
}

pub fn imported_id_is_taken(
    snapshot: &mut Snapshot,
    imported_id: &str,
    by_other_than: AccountId,
) -> Result<bool, Error> {
    Ok(snapshot.query_opt(&IMPORTED_ID_TAKEN, values![imported_id, &by_other_than])?.is_some())
}

/// Inserts new accounts; returns `false` if another transaction has taken one of their imported_ids.
pub fn insert(tx: &mut Tx, accounts: &[&Account]) -> Result<bool, Error> {
    write(tx, accounts, &[])
}

/// Writes changed accounts back.
pub fn update(tx: &mut Tx, edits: &[Edit]) -> Result<(), Error> {
    write(tx, &[], edits).map(|_| ())
}

/// Inserts new accounts and writes changed ones back, together with their index rows; returns `false` if
/// another transaction has taken a new account's imported_id.
pub fn write(tx: &mut Tx, new: &[&Account], edits: &[Edit]) -> Result<bool, Error> {
    if !insert_rows(tx, new)? {
        return Ok(false);
    }
    sample::mark(tx, new)?;
    insert_words(tx, new)?;
    cadence::begin(tx, new)?;
    update_rows(tx, edits)?;
    set_imported_contacts(tx, new, edits)?;
    cadence::follow(tx, edits)?;
    account_field::write(tx, new, edits)?;
    Ok(true)
}

fn insert_rows(tx: &mut Tx, accounts: &[&Account]) -> Result<bool, Error> {
    let stored: Vec<Stored> = accounts.iter().map(|account| Stored::of(account)).collect();
    let mut rows = Vec::with_capacity(accounts.len() * INSERT.width());
    for row in &stored {
        rows.extend::<[Value; 2]>([(&row.account.id).into(), row.account.created_at.into()]);
        row.bind(&mut rows);
    }
    Ok(tx.insert(&INSERT, &rows)?.len() == accounts.len())
}

fn update_rows(tx: &mut Tx, edits: &[Edit]) -> Result<(), Error> {
    let stored: Vec<Stored> = edits.iter().map(|edit| Stored::of(edit.after)).collect();
    let mut rows = Vec::with_capacity(edits.len() * UPDATE.width());
    for row in &stored {
        rows.push((&row.account.id).into());
        row.bind(&mut rows);
    }
    tx.update(&UPDATE, &rows)
}

/// Writes the imported contacts that are new; free if none are.
fn set_imported_contacts(tx: &mut Tx, new: &[&Account], edits: &[Edit]) -> Result<(), Error> {
    let new = new.iter().copied().filter(|account| account.imported_contact_at.is_some());
    let edits = edits.iter().filter(|edit| edit.before.imported_contact_at != edit.after.imported_contact_at);
    let changed = new.chain(edits.map(|edit| edit.after));
    let rows: Vec<Value> =
        changed.flat_map(|account| [Value::from(&account.id), account.imported_contact_at.into()]).collect();
    tx.update(&SET_IMPORTED_CONTACT, &rows)
}

/// Replaces the search words of an account with those of its current name and imported_id.
pub fn replace_words(tx: &mut Tx, account: &Account) -> Result<(), Error> {
    tx.execute(&DELETE_WORDS, values![&account.id])?;
    insert_words(tx, &[account])
}

/// The same for many accounts.
pub fn replace_words_of(tx: &mut Tx, accounts: &[&Account]) -> Result<(), Error> {
    let keys: Vec<Value> = accounts.iter().map(|account| Value::from(&account.id)).collect();
    tx.execute_keys(&DELETE_WORDS_OF, &[], &keys)?;
    insert_words(tx, accounts)
}

fn insert_words(tx: &mut Tx, accounts: &[&Account]) -> Result<(), Error> {
    let words: Vec<(String, &AccountId)> = accounts
        .iter()
        .flat_map(|account| {
            let words = words_of(&account.name, account.imported_id.as_deref());
            words.into_iter().map(|word| (word, &account.id))
        })
        .collect();
    let rows: Vec<Value> =
        words.iter().flat_map(|(word, id)| [Value::from(word), Value::from(*id)]).collect();
    tx.insert(&INSERT_WORDS, &rows)?;
    Ok(())
}

/// Deletes the account with its activity, contacts, conversations and history. Its events stay, because
/// frozen deliveries are still sent, and so does the fact that it was deleted. Returns how many rows of each table were
/// deleted, except for tables that are derived from others.
pub fn delete(tx: &mut Tx, id: AccountId, now: Time) -> Result<Vec<(&'static str, u64)>, Error> {
    if let Some(mut row) = tx.query_opt(&DELETED, values![&id])? {
        let (imported_id, is_sample): (_, bool) = (row.take()?, row.take()?);
        // Readers that follow the accounts never heard of a sample account.
        if !is_sample {
            tombstone::insert(tx, &Tombstone { id, imported_id, deleted_at: now })?;
        }
    }
    mail_reference::delete_of_account(tx, id)?;
    account_field::delete_of_account(tx, id)?;
    tx.execute(&DELETE_WORDS, values![&id])?;
    let mut deleted = activity::delete_of_account(tx, id)?.to_vec();
    deleted.extend([
        ("status_history", history::delete_of_account(tx, id)?),
        ("message", message::delete_of_account(tx, id)?),
        ("conversation", conversation::delete_of_account(tx, id)?),
        ("account_address", account_address::delete_of_account(tx, id)?),
        ("account_site", account_site::delete_of_account(tx, id)?),
        ("contact_episode", cadence::delete_of_account(tx, id)?),
        ("contact", contact::delete_of_account(tx, id)?),
        ("note", note::delete_of_account(tx, id)?),
        ("correction", correction::delete_of_account(tx, id)?),
        ("import_change", import_data::delete_of_account(tx, id)?),
        ("bulk_change", bulk_change::delete_of_account(tx, id)?),
        ("account", tx.execute(&DELETE, values![&id])?),
    ]);
    Ok(deleted)
}

/// An account with the values that storage derives from it.
struct Stored<'a> {
    account: &'a Account,
    name_folded: String,
    snoozed_until: Option<String>,
}

impl<'a> Stored<'a> {
    fn of(account: &'a Account) -> Self {
        let snoozed_until = account.snoozed_until.map(|date| date.to_string());
        Self { account, name_folded: fold(&account.name), snoozed_until }
    }

    /// Appends the values of `COLUMNS`.
    fn bind<'b>(&'b self, row: &mut Vec<Value<'b>>) {
        let account = self.account;
        row.extend::<[Value; 16]>([
            account.imported_id.as_deref().into(),
            (&account.name).into(),
            (&self.name_folded).into(),
            account.status.into(),
            account.custom_fields.as_json().into(),
            account.value.map(|money| money.amount.ten_thousandths()).into(),
            account.value.map(|money| money.currency.code()).into(),
            account.channel.as_ref().map(|channel| &channel.id).into(),
            account.promo_code.as_ref().map(PromoCode::as_str).into(),
            account.acquired_at.into(),
            account.last_contact_at.into(),
            account.cadence_override.into(),
            self.snoozed_until.as_deref().into(),
            account.tracked_since.into(),
            account.campaign_hold.into(),
            account.updated_at.into(),
        ]);
    }
}

pub(crate) fn read(mut row: Row) -> Result<Account, Error> {
    let row = &mut row;
    Ok(Account {
        id: row.take()?,
        imported_id: row.take()?,
        name: row.take()?,
        status: row.take()?,
        custom_fields: CustomFields::from_stored(row.take()?),
        value: money(row.take()?, row.take()?)?,
        promo_code: row.take::<Option<String>>()?.map(PromoCode::from_stored),
        channel: match (row.take()?, row.take()?) {
            (Some(id), Some(name)) => Some(ChannelRef { id, name }),
            // The account changed while we waited for its lock: PostgreSQL then returns the new account, but
            // only the joined rows of the old one.
            (Some::<ChannelId>(_), None) => return Err(Error::Again),
            (None, _) => None,
        },
        acquired_at: row.take()?,
        last_contact_at: row.take()?,
        imported_contact_at: row.take()?,
        first_seen_at: row.take()?,
        last_seen_at: row.take()?,
        cadence_override: row.take()?,
        snoozed_until: row
            .take::<Option<String>>()?
            .map(|text| text.parse().map_err(|_| Error::fault("an account's snooze is not a date")))
            .transpose()?,
        tracked_since: row.take()?,
        campaign_hold: row.take()?,
        sample: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}

fn money(amount: Option<i64>, currency: Option<String>) -> Result<Option<Money>, Error> {
    let (Some(amount), Some(currency)) = (amount, currency) else { return Ok(None) };
    let currency =
        Currency::parse(&currency).map_err(|_| Error::fault("an account's currency is unknown"))?;
    Ok(Some(Money { amount: Amount::from_ten_thousandths(amount), currency }))
}
