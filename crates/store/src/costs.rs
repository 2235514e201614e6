//! How long work took recently, so that what runs together doesn't take too long.
//!
//! The weight of a job says how much it is, but not how long it takes: that depends on what is in memory, on how many
//! deliveries a change causes, and on what else the machine does.

use std::any::TypeId;
use std::collections::HashMap;
use std::time::Duration;

/// However long it takes, this much of a family may run together. It is also how a family begins, while its cost is
/// unknown.
const LEAST_WEIGHT: usize = 64;
/// The time of less work than that hardly depends on its weight, unless it took this long.
const LONG: Duration = Duration::from_millis(40);

/// How long a unit of weight took recently, by family.
#[derive(Default)]
pub struct Costs(HashMap<TypeId, Duration>);

impl Costs {
    pub fn note(&mut self, family: TypeId, weight: usize, took: Duration) {
        if weight < LEAST_WEIGHT && took < LONG {
            return;
        }
        let cost = took / u32::try_from(weight.max(1)).unwrap_or(u32::MAX);
        self.0.entry(family).and_modify(|known| *known = (*known + cost) / 2).or_insert(cost);
    }

    /// How much of a family takes about this long.
    pub fn most_weight(&self, family: TypeId, longest: Duration) -> usize {
        let Some(cost) = self.0.get(&family) else { return LEAST_WEIGHT };
        let most = longest.as_nanos() / cost.as_nanos().max(1);
        usize::try_from(most).unwrap_or(usize::MAX).max(LEAST_WEIGHT)
    }
}
