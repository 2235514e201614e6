//! The members of a company, and who is invited.

use rapport_domain::id::PersonId;
use rapport_domain::invitation::Invitation;
use rapport_domain::member::Member;
use rapport_store::second_factor::holders;
use rapport_store::{Error, Snapshot};

pub use rapport_store::invitation::list as invitations;
pub use rapport_store::member::{get as one, list as all};

/// What the page of members shows.
pub struct Members {
    /// By name, active ones first.
    pub members: Vec<Member>,
    /// Those who have a second factor.
    pub with_factor: Vec<PersonId>,
    /// The pending ones.
    pub invitations: Vec<Invitation>,
}

pub fn page(snapshot: &mut Snapshot) -> Result<Members, Error> {
    let mut members = all(snapshot)?;
    members.sort_by_cached_key(|member| (!member.is_active(), member.name.to_lowercase()));
    let (with_factor, invitations) = (holders(snapshot)?, invitations(snapshot)?);
    Ok(Members { members, with_factor, invitations })
}
