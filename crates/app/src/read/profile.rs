//! The person who is logged in.

use rapport_domain::credential::Presented;
use rapport_domain::member::Member;
use rapport_store::{Error, Snapshot, address_change, member, session};

use crate::password;
use crate::read::Viewer;
use crate::read::factors::{self, Factors};

pub use rapport_store::address_change::Change;
pub use rapport_store::member::Login;
pub use rapport_store::session::{Listed, Workplace};

/// What the profile page shows.
pub struct Profile {
    pub me: Member,
    /// Whether they proved that the address is theirs.
    pub is_proven: bool,
    /// Whether they have a password. Single sign-on makes logins without one.
    pub has_password: bool,
    /// In all companies, or only in this one if single sign-on began the current session.
    pub sessions: Vec<Listed>,
    pub factors: Factors,
}

pub fn page(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Option<Profile>, Error> {
    let Some((me, login)) = login(snapshot, viewer)? else { return Ok(None) };
    let mut sessions = if viewer.caller.by_sso {
        session::of_member(snapshot, me.person)?
    } else {
        session::of_person(snapshot, me.person)?
    };
    // Those that are over are deleted within a day.
    sessions.retain(|listed| !listed.limits.is_over(listed.created_at, listed.last_seen_at, viewer.now));
    let factors = factors::of(snapshot, me.person)?;
    let (is_proven, has_password) = (login.proven_at.is_some(), login.password_hash != password::NOBODYS);
    Ok(Some(Profile { me, is_proven, has_password, sessions, factors }))
}

/// The change of address that a link is for, while it can be confirmed. It may be another person's.
pub fn address_change(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    link: Presented,
) -> Result<Option<Change>, Error> {
    let found = address_change::find(snapshot, &link.hash)?;
    Ok(found.filter(|change| viewer.now < change.expires_at))
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
