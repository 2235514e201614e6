//! Gathers dispatches for one read of their webhooks: with thousands of deliveries a second, a read for each would be a
//! fifth of their cost.

use std::mem;
use std::time::{Duration, Instant};

/// How often rounds with fewer dispatches than are worthwhile take place, in the long run.
const PATIENCE: Duration = Duration::from_millis(2);
const WORTHWHILE: usize = 16;
/// How many of them may follow one another without waiting. Then they wait, until a pause makes up for them: what has
/// little to do sends at once, and what has much to do gathers.
const AT_ONCE: u32 = 4;
/// The most dispatches in a round.
pub const ROUND: usize = 256;

#[derive(Debug)]
pub struct Gathering<T> {
    items: Vec<T>,
    /// When a pause will have made up for all rounds so far.
    made_up_for: Option<Instant>,
}

impl<T> Default for Gathering<T> {
    fn default() -> Self {
        Self { items: Vec::new(), made_up_for: None }
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
        match self.made_up_for {
            _ if self.items.is_empty() => None,
            Some(made_up_for) if self.items.len() < WORTHWHILE => {
                Some(made_up_for.checked_sub(PATIENCE * (AT_ONCE - 1)).unwrap_or(now))
            }
            _ => Some(now),
        }
    }

    /// The next round, if it may start now.
    pub fn round(&mut self, now: Instant) -> Option<Vec<T>> {
        self.starts_at(now).filter(|at| *at <= now)?;
        let made_up_for = self.made_up_for.map_or(now, |at| at.max(now)) + PATIENCE;
        self.made_up_for = Some(made_up_for.min(now + PATIENCE * AT_ONCE));
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
    fn a_few_start_at_once_and_more_of_them_together() {
        let (start, mut gathering) = (Instant::now(), Gathering::default());
        assert_eq!(gathering.round(start), None, "nothing is no round");
        for item in 0..AT_ONCE as usize {
            gather(&mut gathering, item..item + 1);
            assert_eq!(gathering.round(start), Some(vec![item]));
        }

        let soon = start + PATIENCE / 2;
        gather(&mut gathering, 11..12);
        assert_eq!((gathering.starts_at(soon), gathering.round(soon)), (Some(start + PATIENCE), None));
        gather(&mut gathering, 12..13);
        assert_eq!(gathering.round(start + PATIENCE), Some(vec![11, 12]));
        assert_eq!(gathering.starts_at(start + PATIENCE), None, "all have gone");

        gather(&mut gathering, 13..14);
        assert_eq!(gathering.round(start + PATIENCE), None, "one pause made up for one round");
        assert_eq!(gathering.round(start + PATIENCE * 2), Some(vec![13]));

        let later = start + PATIENCE * 9;
        for item in 0..AT_ONCE as usize {
            gather(&mut gathering, item..item + 1);
            assert_eq!(gathering.round(later), Some(vec![item]), "a long pause made up for all");
        }
    }

    #[test]
    fn many_wait_for_nothing_and_the_next_few_not_for_long() {
        let (start, mut gathering) = (Instant::now(), Gathering::default());
        for _ in 0..100 {
            gather(&mut gathering, 0..WORTHWHILE);
            assert_eq!(gathering.round(start).map(|round| round.len()), Some(WORTHWHILE));
        }
        gather(&mut gathering, 0..1);
        assert_eq!(gathering.starts_at(start), Some(start + PATIENCE));
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
