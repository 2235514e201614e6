//! Decides which jobs of a group run in one transaction, and in which batches.
//!
//! A group is bounded by weight when it is taken, but the cost of a row depends on what is in memory: with a
//! cold cache it is a hundred times higher. So it is bounded by time as well: past the limit the writer
//! commits what it has, and the rest goes back to the front of the queue. Every waiting lane gets at least
//! one batch of each transaction, so no lane can starve another.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::costs::Costs;
use crate::queue::{Job, Lane, Waiting};

/// After this long, a transaction takes on only each lane's first batch.
const LONGEST_GROUP: Duration = Duration::from_millis(80);
/// The same, while the checkpointer is about to ask for a pause.
const SHORT_GROUP: Duration = Duration::from_millis(20);
/// The most time one batch should take.
const LONGEST_BATCH: Duration = Duration::from_millis(40);

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
        let most_weight = costs.most_weight(family, LONGEST_BATCH);
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
