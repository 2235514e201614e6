//! Time and randomness from the machine: the only place that asks it for either.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rapport_app::{Clock, Random};
use rapport_domain::time::Time;
use ring::rand::{SecureRandom, SystemRandom};

/// The machine's clock, and how far the shared clock is ahead of it.
pub struct SystemClock {
    started: Instant,
    ahead_micros: AtomicI64,
}

impl SystemClock {
    pub fn new() -> Self {
        Self { started: Instant::now(), ahead_micros: AtomicI64::new(0) }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is given")]
    fn now(&self) -> Time {
        let own = Time::from_timestamp(jiff::Timestamp::now());
        Time::from_micros(own.as_micros() + self.ahead_micros.load(Ordering::Relaxed))
    }

    fn passed(&self) -> Duration {
        self.started.elapsed()
    }

    fn follow(&self, ahead_micros: i64) {
        self.ahead_micros.fetch_add(ahead_micros, Ordering::Relaxed);
    }
}

const BUFFER_BYTES: usize = 4096;

/// The operating system's randomness, fetched in blocks, so that an id costs a copy instead of a system call.
pub struct OsRandom {
    source: SystemRandom,
    buffer: Mutex<Buffer>,
}

struct Buffer {
    bytes: [u8; BUFFER_BYTES],
    /// The bytes before this one were handed out and wiped.
    next: usize,
}

impl OsRandom {
    #[expect(clippy::disallowed_methods, reason = "this is the randomness that everything else is given")]
    pub fn new() -> Self {
        let buffer = Buffer { bytes: [0; BUFFER_BYTES], next: BUFFER_BYTES };
        Self { source: SystemRandom::new(), buffer: Mutex::new(buffer) }
    }

    fn fetch(&self, bytes: &mut [u8]) {
        self.source.fill(bytes).expect("the operating system provides random bytes");
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

    const DAY_MICROS: i64 = 86_400_000_000;

    #[test]
    fn a_process_follows_the_databases_clock_if_it_has_one() {
        for engine in rapport_testkit::Engine::BOTH {
            let test = rapport_testkit::TestApp::on(engine);
            let store = rapport_store::Store::open(&rapport_store::Config::new(test.database().clone()));
            let clock = std::sync::Arc::new(SystemClock::new());
            let vault = rapport_app::Vault::new(&[7; 32]);
            let random = std::sync::Arc::new(OsRandom::new());
            let parts = rapport_app::Parts::new(clock.clone(), random, vault);
            let app = rapport_app::App::new(store.expect("opened"), parts);
            // The machine's clock is set eight days ahead, or back.
            for skew in [8 * DAY_MICROS, -8 * DAY_MICROS] {
                clock.follow(skew);
                let passed = app.passed();
                app.follow_database_clock_blocking().expect("asked");
                let off = app.now().micros_since(SystemClock::new().now());
                let shared = engine == rapport_testkit::Engine::Postgres;
                assert_eq!(off.abs() < DAY_MICROS, shared, "{off} on {engine}");
                assert!(app.passed() < passed + Duration::from_hours(1), "elapsed time is not affected");
                if !shared {
                    clock.follow(-skew);
                }
            }
        }
    }
}
