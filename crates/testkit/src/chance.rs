//! Choices decided by a seed.

use rapport_app::Random as _;

use crate::SeededRandom;

#[derive(Debug)]
pub struct Chance(SeededRandom);

impl Chance {
    pub const fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// A number below `limit`, which must not be zero.
    pub fn below(&self, limit: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        let limit = u64::try_from(limit).expect("a limit of 64 bits");
        usize::try_from(u64::from_le_bytes(bytes) % limit).expect("below a usize")
    }
}
