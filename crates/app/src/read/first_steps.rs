//! The first steps of a new company, and which of them it has already taken.

use rapport_store::{Error, Snapshot, invitation, member};

use crate::read::{Viewer, pulse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstSteps {
    /// Sample accounts don't count.
    pub has_accounts: bool,
    /// The product has reported activity.
    pub is_connected: bool,
    /// Somebody else is a member, or was invited.
    pub has_team: bool,
}

impl FirstSteps {
    pub const COUNT: usize = 3;

    pub fn done(self) -> usize {
        [self.has_accounts, self.is_connected, self.has_team].into_iter().filter(|is_done| *is_done).count()
    }

    pub fn are_done(self) -> bool {
        self.done() == Self::COUNT
    }
}

pub(super) fn taken(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    has_accounts: bool,
) -> Result<FirstSteps, Error> {
    let is_connected = pulse::is_connected(snapshot, viewer)?;
    let has_team = member::list(snapshot)?.len() > 1 || !invitation::list(snapshot)?.is_empty();
    Ok(FirstSteps { has_accounts, is_connected, has_team })
}
