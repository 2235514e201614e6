//! The Pulse card: first seen, last seen, activity over the last 90 days, and the most-used features.

use std::collections::HashMap;

use rapport_domain::activity::PULSE_DAYS;
use rapport_domain::credential::Kind;
use rapport_domain::id::AccountId;
use rapport_domain::time::{Day, Time};
use rapport_store::activity::{self, FeatureUse};
use rapport_store::{Error, Snapshot, credential};

use crate::pages::chart::days::DaysChart;

/// The state of the card.
pub enum Pulse {
    Seen(Box<Figures>),
    /// Activity arrives, but none for this account.
    NeverSeen,
    /// No activity has ever arrived for any account.
    NothingConnected,
}

pub struct Figures {
    pub first: Time,
    pub last: Time,
    pub total: i64,
    pub chart: DaysChart,
    pub features: Vec<Feature>,
}

impl Figures {
    /// The features that are always shown, and those that are folded away.
    pub fn features(&self) -> (&[Feature], &[Feature]) {
        self.features.split_at(self.features.len().min(FEATURES_AT_ONCE))
    }
}

const FEATURES_AT_ONCE: usize = 8;

pub struct Feature {
    pub name: String,
    pub count: i64,
    pub last_used_at: Time,
    /// The length of its bar, in percent.
    pub percent: i64,
}

impl Pulse {
    pub fn read(snapshot: &mut Snapshot, account: AccountId, today: Day) -> Result<Self, Error> {
        let Some((first, last)) = activity::seen(snapshot, account)? else {
            let is_connected = activity::has_any(snapshot)? || key_was_used(snapshot)?;
            return Ok(if is_connected { Self::NeverSeen } else { Self::NothingConnected });
        };
        let counts: HashMap<Day, i64> = activity::days(snapshot, account, today)?.into_iter().collect();
        let days = (0..PULSE_DAYS).rev().map(|back| today.minus_days(back));
        let days = days.map(|day| (day.date(), counts.get(&day).copied().unwrap_or(0))).collect();
        Ok(Self::Seen(Box::new(Figures {
            first,
            last,
            total: activity::total(snapshot, account)?,
            chart: DaysChart::new("Activity per day", days),
            features: bars(activity::features(snapshot, account)?),
        })))
    }
}

/// The key is the only trace of events that matched no account.
fn key_was_used(snapshot: &mut Snapshot) -> Result<bool, Error> {
    let keys = credential::list(snapshot, Kind::IngestKey)?;
    Ok(keys.iter().any(|key| key.last_used_at.is_some()))
}

fn bars(features: Vec<FeatureUse>) -> Vec<Feature> {
    let most = features.iter().map(|used| used.count).max().unwrap_or(1).max(1);
    let bar = |FeatureUse { feature, count, last_used_at }| Feature {
        name: feature,
        count,
        last_used_at,
        percent: (count.saturating_mul(100) / most).max(1),
    };
    features.into_iter().map(bar).collect()
}
