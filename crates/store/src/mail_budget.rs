//! What was mailed to an address during the last day, for the limits on mail that people cause. A row is locked while
//! its transaction decides, so the limits hold for all nodes together.

use rapport_domain::id::{MailId, lowest_at};
use rapport_domain::mail_limit::{COUNTED_SECONDS, SentMails};
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    // Also locks the row if it is there.
    reference OPEN = "INSERT INTO mail_budget (mark, sent, last_at) VALUES ($1, '[]', $2) \
                      ON CONFLICT (mark) DO UPDATE SET last_at = excluded.last_at RETURNING sent";
    reference KEEP = "UPDATE mail_budget SET sent = $2 WHERE mark = $1";
    reference PRUNE = "DELETE FROM mail_budget WHERE last_at < $1";
    // The kinds are those of `OF_A_COMPANY`.
    company NEWEST = "SELECT created_at FROM mail WHERE company = $1 AND id >= $2 \
                      AND (kind = 'invitation' OR kind = 'address_change' OR kind = 'test') \
                      ORDER BY id DESC LIMIT 1 OFFSET $3";
}

/// What was mailed under a mark, locked until the transaction ends.
pub fn open(tx: &mut Tx, mark: &[u8; 32], now: Time) -> Result<SentMails, Error> {
    let row = tx.query_opt(&OPEN, values![mark.as_slice(), now])?;
    let sent: Option<String> = row.map(|mut row| row.take()).transpose()?;
    Ok(sent.map_or_else(SentMails::default, |text| SentMails::from_stored(&text)))
}

pub fn keep(tx: &mut Tx, mark: &[u8; 32], sent: &SentMails) -> Result<(), Error> {
    let text = sent.to_stored();
    tx.execute(&KEEP, values![mark.as_slice(), &text])?;
    Ok(())
}

/// When the company caused its `number`th newest mail of `OF_A_COMPANY`, if that wasn't before `since`.
pub fn newest(snapshot: &mut Snapshot, number: i64, since: Time) -> Result<Option<Time>, Error> {
    let row = snapshot.query_opt(&NEWEST, values![&lowest_at::<MailId>(since), number - 1])?;
    row.map(|mut row| row.take()).transpose()
}

/// Forgets what no longer counts.
pub fn prune(tx: &mut Tx, now: Time) -> Result<(), Error> {
    tx.execute(&PRUNE, values![now.plus_seconds(-COUNTED_SECONDS)])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rapport_domain::mail::Kind;
    use rapport_domain::mail_limit::OF_A_COMPANY;

    use super::*;

    #[test]
    fn the_statement_names_each_kind_that_counts_for_a_company() {
        for kind in Kind::ALL {
            let is_named = NEWEST.sql.contains(&format!("kind = '{}'", kind.as_str()));
            assert_eq!(is_named, OF_A_COMPANY.contains(&kind), "{kind:?}");
        }
    }
}
