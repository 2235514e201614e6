//! API tokens, and the keys of programs.

use rapport_domain::credential::{Credential, Kind};
use rapport_domain::member::Member;
use rapport_store::{Error, Snapshot, credential, member};

use crate::read::Viewer;

pub use rapport_store::credential::{Holder, Token};

/// The API tokens that the viewer may revoke: only owners see those of owners.
pub fn tokens(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Vec<Token>, Error> {
    let mut tokens = credential::tokens(snapshot)?;
    tokens.retain(|token| token.rank() <= viewer.caller.role);
    Ok(tokens)
}

/// What the page of tokens shows: the tokens, and the members that the viewer may create one for.
pub fn page(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<(Vec<Token>, Vec<Member>), Error> {
    let mut members = member::list(snapshot)?;
    members.retain(|member| member.is_active() && member.role <= viewer.caller.role);
    members.sort_by_cached_key(|member| member.name.to_lowercase());
    Ok((tokens(snapshot, viewer)?, members))
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
