//! The person who is logged in.

use rapport_domain::member::Member;
use rapport_store::{Error, Snapshot, member, session};

use crate::read::Viewer;

pub use rapport_store::member::Login;
pub use rapport_store::session::{Listed, Workplace};

/// What the profile page shows.
pub struct Profile {
    pub me: Member,
    /// Whether they proved that the address is theirs.
    pub is_proven: bool,
    pub sessions: Vec<Listed>,
}

pub fn page(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Option<Profile>, Error> {
    let Some((me, login)) = login(snapshot, viewer)? else { return Ok(None) };
    let sessions = session::of_person(snapshot, me.person)?;
    Ok(Some(Profile { me, is_proven: login.proven_at.is_some(), sessions }))
}

/// The viewer as a member, and how they log in.
pub fn login(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Option<(Member, Login)>, Error> {
    let Some(me) = me(snapshot, viewer)? else { return Ok(None) };
    Ok(member::login(snapshot, me.person)?.map(|login| (me, login)))
}

fn me(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Option<Member>, Error> {
    match viewer.person() {
        Some(person) => member::get(snapshot, person),
        None => Ok(None),
    }
}
