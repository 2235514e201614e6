//! API tokens, and the keys of programs.

use rapport_domain::credential::{Credential, Kind};
use rapport_store::{Error, Snapshot, credential};

/// The live API tokens.
pub fn tokens(snapshot: &mut Snapshot) -> Result<Vec<Credential>, Error> {
    credential::list(snapshot, Kind::ApiToken)
}

/// The keys of a company, as far as it has them.
pub struct Keys {
    pub ingest: Option<Credential>,
    pub inbound: Option<Credential>,
}

pub fn keys(snapshot: &mut Snapshot) -> Result<Keys, Error> {
    let mut key = |kind| credential::list(snapshot, kind).map(|keys| keys.into_iter().next());
    Ok(Keys { ingest: key(Kind::IngestKey)?, inbound: key(Kind::InboundKey)? })
}
