//! Decides which jobs of a group run in one transaction, and in which batches.
//!
//! A group is bounded by weight when it is taken, but the cost of a row depends on what is in memory: with a
//! cold cache it is a hundred times higher. So it is bounded by time as well: past the limit the writer
//! commits what it has, and the rest goes back to the front of the queue. Every waiting lane gets at least
//! one batch of each transaction, so no lane can starve another.

use std::any::TypeId;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::queue::{Job, Lane, Waiting};

/// After this long, a transaction takes on only each lane's first batch.
const LONGEST_GROUP: Duration = Duration::from_millis(80);
/// The same, while the checkpointer is about to ask for a pause.
const SHORT_GROUP: Duration = Duration::from_millis(20);
/// The most time one batch should take.
const LONGEST_BATCH: Duration = Duration::from_millis(40);
/// A family's batches never get smaller than this, and start with it while its cost is unknown.
const LEAST_WEIGHT: usize = 64;

pub type Batch = Vec<Box<dyn Job>>;

/// A group that is handed out batch by batch.
pub struct Agenda {
    jobs: VecDeque<Waiting>,
    begun: Instant,
    longest: Duration,
    served: Vec<Lane>,
}

impl Agenda {
    pub fn new(group: Vec<Waiting>, is_short: bool) -> Self {
        let longest = if is_short { SHORT_GROUP } else { LONGEST_GROUP };
        Self { jobs: group.into(), begun: Instant::now(), longest, served: Vec::new() }
    }

    /// The next job in order, with others of its family and company that fit beside it.
    pub fn next(&mut self, costs: &Costs) -> Option<Batch> {
        let is_late = self.begun.elapsed() >= self.longest;
        let may_run = |waiting: &Waiting| !is_late || !self.served.contains(&waiting.lane);
        let mut at = self.jobs.iter().position(may_run)?;
        let first = self.jobs.remove(at)?;
        if !self.served.contains(&first.lane) {
            self.served.push(first.lane);
        }
        let mut batch = vec![first.job];
        let (company, most) = (batch[0].company(), batch[0].most_together());
        let Some(family) = batch[0].family() else { return Some(batch) };
        let most_weight = costs.most_weight(family);
        let mut weight = batch[0].weight();
        while at < self.jobs.len() && batch.len() < most {
            let job = &self.jobs[at].job;
            if job.family() != Some(family) || job.company() != company {
                at += 1;
                continue;
            }
            weight += job.weight();
            if weight > most_weight {
                break;
            }
            batch.extend(self.jobs.remove(at).map(|waiting| waiting.job));
        }
        Some(batch)
    }

    /// The jobs that there was no time for, in order.
    pub fn left(self) -> VecDeque<Waiting> {
        self.jobs
    }
}

/// How long a unit of weight took recently, by family.
#[derive(Default)]
pub struct Costs(HashMap<TypeId, Duration>);

impl Costs {
    pub fn note(&mut self, batch: &Batch, took: Duration) {
        let Some(family) = batch[0].family() else { return };
        let weight: usize = batch.iter().map(|job| job.weight()).sum();
        // The time of a small batch hardly depends on its weight.
        if weight < LEAST_WEIGHT && took < LONGEST_BATCH {
            return;
        }
        let cost = took / u32::try_from(weight.max(1)).unwrap_or(u32::MAX);
        self.0.entry(family).and_modify(|known| *known = (*known + cost) / 2).or_insert(cost);
    }

    fn most_weight(&self, family: TypeId) -> usize {
        let Some(cost) = self.0.get(&family) else { return LEAST_WEIGHT };
        let most = LONGEST_BATCH.as_nanos() / cost.as_nanos().max(1);
        usize::try_from(most).unwrap_or(usize::MAX).max(LEAST_WEIGHT)
    }
}
