//! Repeatable randomness: the made-up company is the same each time, only its dates follow today's.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64. Nothing about it is secret: credentials come from the operating system.
pub struct Chance(u64);

impl Chance {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        let span = u64::try_from(most - least + 1).unwrap_or(1).max(1);
        least + i64::try_from(self.next() % span).unwrap_or(0)
    }

    pub fn percent(&mut self, of_hundred: i64) -> bool {
        self.between(1, 100) <= of_hundred
    }

    pub fn one_of<'a, T>(&mut self, table: &'a [T]) -> &'a T {
        let last = i64::try_from(table.len()).unwrap_or(1) - 1;
        &table[usize::try_from(self.between(0, last)).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_repeats_and_keeps_to_its_range() {
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            (0..200).map(|_| chance.between(-3, 3)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let drawn = draw(7);
        assert!((-3..=3).all(|number| drawn.contains(&number)) && drawn.iter().all(|n| n.abs() <= 3));
    }
}
