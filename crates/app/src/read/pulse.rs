//! An account's Pulse: when it was seen, how often, and what it uses.

use rapport_domain::credential::Kind;
use rapport_domain::id::AccountId;
use rapport_domain::time::{Day, Time};
use rapport_store::{Error, Snapshot, activity, credential};

use crate::read::Viewer;
use crate::read::account::of_existing;
use crate::sample::sample_accounts;

pub use rapport_store::activity::FeatureUse;

/// An account's activity.
pub struct Figures {
    pub today: Day,
    /// First and last seen.
    pub seen: Option<(Time, Time)>,
    /// The days with activity.
    pub days: Vec<(Day, i64)>,
    pub features: Vec<FeatureUse>,
}

pub fn figures(snapshot: &mut Snapshot, viewer: &Viewer, id: AccountId) -> Result<Option<Figures>, Error> {
    of_existing(snapshot, id, |snapshot| {
        let today = viewer.today();
        Ok(Figures {
            today,
            seen: activity::seen(snapshot, id)?,
            days: activity::days(snapshot, id, today)?,
            features: activity::features(snapshot, id)?,
        })
    })
}

/// The card on an account's page.
pub enum Card {
    Seen {
        first: Time,
        last: Time,
        /// All events so far.
        total: i64,
        /// The days with activity.
        days: Vec<(Day, i64)>,
        features: Vec<FeatureUse>,
    },
    /// Activity arrives, but none for this account.
    NeverSeen,
    /// No activity has ever arrived for any account.
    NothingConnected,
}

pub(super) fn card(snapshot: &mut Snapshot, viewer: &Viewer, account: AccountId) -> Result<Card, Error> {
    let Some((first, last)) = activity::seen(snapshot, account)? else {
        return Ok(if is_connected(snapshot, viewer)? { Card::NeverSeen } else { Card::NothingConnected });
    };
    Ok(Card::Seen {
        first,
        last,
        total: activity::total(snapshot, account)?,
        days: activity::days(snapshot, account, viewer.today())?,
        features: activity::features(snapshot, account)?,
    })
}

/// Whether activity has ever arrived for any account. That of sample accounts didn't arrive.
pub(super) fn is_connected(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<bool, Error> {
    let samples = sample_accounts(snapshot, &viewer.caller.company)?;
    Ok(activity::has_any(snapshot, &samples)? || key_was_used(snapshot)?)
}

/// The key is the only trace of events that matched no account.
fn key_was_used(snapshot: &mut Snapshot) -> Result<bool, Error> {
    let keys = credential::list(snapshot, Kind::IngestKey)?;
    Ok(keys.iter().any(|key| key.last_used_at.is_some()))
}
