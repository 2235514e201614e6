//! Gathers dispatches for one read of their webhooks: with thousands of deliveries a second, a read for each would be a
//! fifth of their cost.

use std::mem;
use std::time::{Duration, Instant};

/// A round with fewer dispatches waits until the last one was this long ago. After a pause, nothing waits.
const PATIENCE: Duration = Duration::from_millis(2);
const WORTHWHILE: usize = 16;
/// The most dispatches in a round.
pub const ROUND: usize = 256;

#[derive(Debug)]
pub struct Gathering<T> {
    items: Vec<T>,
    last_round: Option<Instant>,
}

impl<T> Default for Gathering<T> {
    fn default() -> Self {
        Self { items: Vec::new(), last_round: None }
    }
}

impl<T> Gathering<T> {
    pub fn gather(&mut self, mut next: impl FnMut() -> Option<T>) {
        while self.items.len() < ROUND {
            let Some(item) = next() else { break };
            self.items.push(item);
        }
    }

    /// When the next round may start; `None` if nothing waits for one.
    pub fn starts_at(&self, now: Instant) -> Option<Instant> {
        match self.last_round {
            _ if self.items.is_empty() => None,
            Some(last) if self.items.len() < WORTHWHILE => Some(last + PATIENCE),
            _ => Some(now),
        }
    }

    /// The next round, if it may start now.
    pub fn round(&mut self, now: Instant) -> Option<Vec<T>> {
        self.starts_at(now).filter(|at| *at <= now)?;
        self.last_round = Some(now);
        Some(self.take())
    }

    pub fn take(&mut self) -> Vec<T> {
        mem::take(&mut self.items)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn gather(gathering: &mut Gathering<usize>, mut items: Range<usize>) {
        gathering.gather(|| items.next());
    }

    #[test]
    fn one_after_a_pause_starts_at_once_and_the_next_ones_together() {
        let (start, mut gathering) = (Instant::now(), Gathering::default());
        assert_eq!(gathering.round(start), None, "nothing is no round");
        gather(&mut gathering, 0..1);
        assert_eq!(gathering.round(start), Some(vec![0]));

        let soon = start + PATIENCE / 2;
        gather(&mut gathering, 1..2);
        assert_eq!((gathering.starts_at(soon), gathering.round(soon)), (Some(start + PATIENCE), None));
        gather(&mut gathering, 2..3);
        assert_eq!(gathering.round(start + PATIENCE), Some(vec![1, 2]));
        assert_eq!(gathering.starts_at(start + PATIENCE), None, "all have gone");

        gather(&mut gathering, 3..4);
        assert_eq!(gathering.round(start + PATIENCE * 9), Some(vec![3]), "after a pause, nothing waits");
    }

    #[test]
    fn many_wait_for_nothing() {
        let (start, mut gathering) = (Instant::now(), Gathering::default());
        gather(&mut gathering, 0..1);
        assert!(gathering.round(start).is_some());
        gather(&mut gathering, 0..WORTHWHILE);
        assert_eq!(gathering.round(start).map(|round| round.len()), Some(WORTHWHILE));
    }

    #[test]
    fn a_round_has_a_limit() {
        let (start, mut gathering) = (Instant::now(), Gathering::default());
        let mut items = 0..;
        gathering.gather(|| items.next());
        assert_eq!(gathering.round(start).map(|round| round.len()), Some(ROUND));
        assert_eq!(items.next(), Some(ROUND), "the rest stays where it was");
    }
}
