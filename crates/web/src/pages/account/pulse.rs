//! The Pulse card: first seen, last seen, activity over the last 90 days, and the most-used features.

use std::collections::HashMap;

use rapport_app::read::pulse::{Card, FeatureUse};
use rapport_domain::activity::PULSE_DAYS;
use rapport_domain::time::{Day, Time};

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
    pub fn new(card: Card, today: Day) -> Self {
        let (first, last, total, days, features) = match card {
            Card::Seen { first, last, total, days, features } => (first, last, total, days, features),
            Card::NeverSeen => return Self::NeverSeen,
            Card::NothingConnected => return Self::NothingConnected,
        };
        let counts: HashMap<Day, i64> = days.into_iter().collect();
        let days = (0..PULSE_DAYS).rev().map(|back| today.minus_days(back));
        let days = days.map(|day| (day.date(), counts.get(&day).copied().unwrap_or(0))).collect();
        let chart = DaysChart::new("Activity per day", days);
        Self::Seen(Box::new(Figures { first, last, total, chart, features: bars(features) }))
    }
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
