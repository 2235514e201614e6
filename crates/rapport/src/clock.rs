//! Time and chance from the machine: the one place that asks it for either.

use std::sync::{Mutex, PoisonError};

use rapport_app::{Clock, Random};
use rapport_domain::time::Time;
use ring::rand::{SecureRandom, SystemRandom};

pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is handed in")]
    fn now(&self) -> Time {
        Time::from_timestamp(jiff::Timestamp::now())
    }
}

const BUFFER_BYTES: usize = 4096;

/// The operating system's randomness, fetched in blocks: an id then costs a copy, not a system call.
pub struct OsRandom {
    source: SystemRandom,
    buffer: Mutex<Buffer>,
}

struct Buffer {
    bytes: [u8; BUFFER_BYTES],
    /// What lies before was handed out, and wiped.
    next: usize,
}

impl OsRandom {
    #[expect(clippy::disallowed_methods, reason = "this is the randomness that is handed in")]
    pub fn new() -> Self {
        let buffer = Buffer { bytes: [0; BUFFER_BYTES], next: BUFFER_BYTES };
        Self { source: SystemRandom::new(), buffer: Mutex::new(buffer) }
    }

    fn fetch(&self, bytes: &mut [u8]) {
        self.source.fill(bytes).expect("the operating system gives random bytes");
    }
}

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        if bytes.len() > BUFFER_BYTES {
            return self.fetch(bytes);
        }
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if BUFFER_BYTES - buffer.next < bytes.len() {
            self.fetch(&mut buffer.bytes);
            buffer.next = 0;
        }
        let taken = buffer.next..buffer.next + bytes.len();
        buffer.next = taken.end;
        bytes.copy_from_slice(&buffer.bytes[taken.clone()]);
        buffer.bytes[taken].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_handed_out_twice() {
        let random = OsRandom::new();
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            let mut bytes = [0; 10];
            random.fill(&mut bytes);
            assert!(seen.insert(bytes));
        }
    }

    #[test]
    fn any_length_is_filled() {
        let random = OsRandom::new();
        for length in [0, 1, BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1] {
            let mut bytes = vec![0; length];
            random.fill(&mut bytes);
            let different = bytes.iter().collect::<HashSet<_>>().len();
            assert!(length < 64 || different > 64, "{different} different bytes in {length}");
        }
    }
}
