//! The members of a company, and who is invited.

use rapport_domain::invitation::Invitation;
use rapport_domain::member::Member;
use rapport_store::{Error, Snapshot};

pub use rapport_store::invitation::list as invitations;
pub use rapport_store::member::{get as one, list as all};

/// Everything the page of members shows: members by name, active ones first, and pending invitations.
pub fn page(snapshot: &mut Snapshot) -> Result<(Vec<Member>, Vec<Invitation>), Error> {
    let mut members = all(snapshot)?;
    members.sort_by_cached_key(|member| (!member.is_active(), member.name.to_lowercase()));
    Ok((members, invitations(snapshot)?))
}
