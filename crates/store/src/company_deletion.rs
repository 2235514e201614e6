//! Companies that will be deleted: when, and since when that is under way. Their data is in [`crate::company_data`].

use rapport_domain::company_deletion::Deletion;
use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::subscription;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company GET = "SELECT requested_at, requested_by, at, began_at FROM company_deletion WHERE company = $1";
    company INSERT = "INSERT INTO company_deletion (company, requested_at, requested_by, at) \
                      VALUES ($1, $2, $3, $4) ON CONFLICT (company) DO NOTHING RETURNING at";
    company SET_TIME = "UPDATE company_deletion SET at = $2 WHERE company = $1";
    company DELETE = "DELETE FROM company_deletion WHERE company = $1";
    company BEGIN = "UPDATE company_deletion SET began_at = $2 WHERE company = $1 AND began_at IS NULL";
    reference DUE = "SELECT company FROM company_deletion WHERE at <= $1 OR began_at IS NOT NULL ORDER BY company";
    // What lets anyone in, or sends anything.
    company END_CREDENTIALS = "DELETE FROM credential WHERE company = $1";
    company END_SESSIONS = "DELETE FROM session WHERE company = $1";
    company END_INVITATIONS = "DELETE FROM invitation WHERE company = $1";
    company END_SSO = "DELETE FROM sso WHERE company = $1";
    company END_MEMBERS = "UPDATE member SET deactivated_at = $2 WHERE company = $1 AND deactivated_at IS NULL";
    company END_WEBHOOKS = "UPDATE webhook SET deleted_at = $2, headers = '', header_secrets = NULL WHERE company = $1 AND deleted_at IS NULL";
    company MEMBERS = "SELECT person FROM member WHERE company = $1 ORDER BY person LIMIT $2";
    // The company itself, and the tables with one row for each company.
    company END_SCHEDULE = "DELETE FROM digest_schedule WHERE company = $1";
    company END_FILL = "DELETE FROM field_fill WHERE company = $1";
    company END_COUNT = "DELETE FROM channel_count WHERE company = $1";
    company END_SUBSCRIPTION = "DELETE FROM subscription WHERE company = $1";
    company END_COMPANY = "DELETE FROM company WHERE id = $1";
}

/// Tables with one row for each company, which go together with it.
pub const SINGLES: [&str; 5] =
    ["channel_count", "company_deletion", "digest_schedule", "field_fill", "subscription"];

pub fn get(snapshot: &mut Snapshot) -> Result<Option<Deletion>, Error> {
    let deletion = |mut row: Row| {
        let row = &mut row;
        Ok(Deletion {
            requested_at: row.take()?,
            requested_by: row.take()?,
            at: row.take()?,
            began_at: row.take()?,
        })
    };
    snapshot.query_opt(&GET, &[])?.map(deletion).transpose()
}

/// Returns `false` if it was already asked for.
pub fn insert(tx: &mut Tx, deletion: &Deletion) -> Result<bool, Error> {
    let Deletion { requested_at, requested_by, at, .. } = deletion;
    let values = values![*requested_at, requested_by.as_deref(), *at];
    Ok(tx.query_opt(&INSERT, values)?.is_some())
}

/// Lets the deletion begin at another time.
pub fn set_time(tx: &mut Tx, at: Time) -> Result<(), Error> {
    tx.execute(&SET_TIME, values![at])?;
    Ok(())
}

pub fn cancel(tx: &mut Tx) -> Result<(), Error> {
    tx.execute(&DELETE, &[])?;
    Ok(())
}

/// The companies whose waiting is over, or whose deletion is under way.
pub fn due(across: &mut Across, now: Time) -> Result<Vec<CompanyId>, Error> {
    across.query(&DUE, values![now])?.into_iter().map(|mut row| row.take()).collect()
}

/// Begins the deletion: from now on nobody gets in, and nothing is sent.
pub fn begin(tx: &mut Tx, now: Time) -> Result<(), Error> {
    tx.execute(&BEGIN, values![now])?;
    for statement in [&END_CREDENTIALS, &END_SESSIONS, &END_INVITATIONS, &END_SSO] {
        tx.execute(statement, &[])?;
    }
    for statement in [&END_MEMBERS, &END_WEBHOOKS] {
        tx.execute(statement, values![now])?;
    }
    subscription::renew(tx, now)
}

/// Some people who belong to the company.
pub fn members(snapshot: &mut Snapshot, limit: i64) -> Result<Vec<PersonId>, Error> {
    snapshot.query(&MEMBERS, values![limit])?.into_iter().map(|mut row| row.take()).collect()
}

/// Deletes the company itself, once nothing else of it is left.
pub fn finish(tx: &mut Tx) -> Result<(), Error> {
    for statement in [&END_SCHEDULE, &END_FILL, &END_COUNT, &END_SUBSCRIPTION, &DELETE, &END_COMPANY] {
        tx.execute(statement, &[])?;
    }
    Ok(())
}
