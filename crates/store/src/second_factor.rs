//! Who has second factors, and how many. The factors themselves are in `passkey` and `totp`.

use rapport_domain::id::PersonId;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::values;

statements! {
    reference COUNT = "SELECT (SELECT count(*) FROM passkey WHERE person = $1) + \
                       (SELECT count(*) FROM totp WHERE person = $1 AND confirmed_at IS NOT NULL)";
    company HOLDERS = "SELECT m.person FROM member m WHERE m.company = $1 \
                       AND (SELECT count(*) FROM passkey k WHERE k.person = m.person) + \
                       (SELECT count(*) FROM totp t WHERE t.person = m.person AND t.confirmed_at IS NOT NULL) > 0";
}

/// The number of passkeys, and of authenticator apps that were confirmed.
pub fn count(snapshot: &mut Snapshot, person: PersonId) -> Result<i64, Error> {
    snapshot.query_opt(&COUNT, values![&person])?.map_or(Ok(0), |mut row| row.take())
}

/// The members of the company who have one.
pub fn holders(snapshot: &mut Snapshot) -> Result<Vec<PersonId>, Error> {
    snapshot.query(&HOLDERS, &[])?.into_iter().map(|mut row| row.take()).collect()
}
