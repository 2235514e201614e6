//! How many second factors a person has. The factors themselves are in `passkey` and `totp`.

use rapport_domain::id::PersonId;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::values;

statements! {
    reference COUNT = "SELECT (SELECT count(*) FROM passkey WHERE person = $1) + \
                       (SELECT count(*) FROM totp WHERE person = $1 AND confirmed_at IS NOT NULL)";
}

/// The number of passkeys, and of authenticator apps that were confirmed.
pub fn count(snapshot: &mut Snapshot, person: PersonId) -> Result<i64, Error> {
    snapshot.query_opt(&COUNT, values![&person])?.map_or(Ok(0), |mut row| row.take())
}
