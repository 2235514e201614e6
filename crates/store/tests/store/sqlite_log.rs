//! SQLite's write-ahead log: no reader blocks the writer, and the log becomes short again.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rapport_domain::custom_fields::CustomFields;
use rapport_domain::id::CompanyId;
use rapport_store::{Database, LogFigures, Store, account};

use crate::support::{LONG, World, account_id, new_account, patient};

/// A writer that waited for a reader used to do so for five seconds, each time once the log was long.
const STALL: Duration = Duration::from_secs(3);
/// A loaded machine may stall a write by itself now and then.
const MOST_STALLS: usize = 10;
/// More than the log grows to without readers, and enough to be reported as long.
const MUCH_BYTES: u64 = 200 << 20;
/// The size of the log's file after it grew: twice the size at which the log starts over, and one group.
const SHORT_BYTES: u64 = 140 << 20;

struct Place {
    world: World,
    company: CompanyId,
    log: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rapport.db");
        let database = Database::Sqlite(path.clone());
        let store = Store::open(&patient(database.clone())).expect("a database that opens");
        let world = World { store, database };
        let company = world.company("acme");
        Self { world, company, log: path.with_file_name("rapport.db-wal"), _directory: directory }
    }

    fn log_file_bytes(&self) -> u64 {
        fs::metadata(&self.log).expect("a log").len()
    }

    fn figures(&self) -> LogFigures {
        self.world.store.figures().log.expect("figures of a log")
    }

    /// Writes about a megabyte; returns how long it took.
    fn write_a_megabyte(&self, number: u64) -> Duration {
        let text = "x".repeat(60_000);
        let accounts = (0..16).map(|n| {
            let mut account = new_account(number * 16 + n, "Nordlys");
            account.custom_fields = CustomFields::from_stored(format!(r#"{{"note":"{text}"}}"#));
            account
        });
        let accounts = accounts.collect();
        let begun = Instant::now();
        self.world.insert(self.company, accounts);
        begun.elapsed()
    }
}

/// Waits for a condition while small writes continue, as in any service.
fn write_until(place: &Place, what: &str, first: u64, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    let mut number = first;
    while !done() {
        assert!(begun.elapsed() < LONG, "waited in vain for {what}: {:?}", place.figures());
        place.world.insert(place.company, vec![new_account(number, "Small")]);
        number += 1;
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_snapshot_held_open_stalls_no_write_and_the_log_shrinks_after_it() {
    let lines = captured_log();
    let place = Place::new();
    // One reader in another program, and one of our own.
    let Database::Sqlite(path) = &place.world.database else { unreachable!("opened as SQLite") };
    let reader = rusqlite::Connection::open(path).expect("opened");
    reader.execute_batch("BEGIN; SELECT count(*) FROM account").expect("a snapshot");
    let (release, released) = channel::<()>();
    let (begun, has_begun) = channel();
    let own = place.world.store.read(place.company, move |snapshot| {
        account::existing(snapshot, &[account_id(1)])?;
        let _ = begun.send(());
        let _ = released.recv();
        Ok(())
    });
    has_begun.recv_timeout(LONG).expect("a read that begins");

    let (mut number, mut stalls) = (0, 0);
    while place.log_file_bytes() < MUCH_BYTES {
        stalls += usize::from(place.write_a_megabyte(number) >= STALL);
        assert!(stalls <= MOST_STALLS, "{stalls} of {number} writes took {STALL:?} or longer");
        number += 1;
    }
    let small = 1_000_000;
    write_until(&place, "the long log to be counted", small, || {
        place.figures().bytes >= MUCH_BYTES - SHORT_BYTES && place.figures().blocked_checkpoints > 0
    });

    drop((reader, release));
    own.blocking_recv().expect("an answer").expect("a read");
    write_until(&place, "a short log", 2 * small, || {
        place.figures().bytes < MUCH_BYTES / 10 && place.log_file_bytes() <= SHORT_BYTES
    });
    assert_eq!(place.figures().failed_checkpoints, 0);
    let told = |text: &str| lines.lock().iter().filter(|line| line.contains(text)).count();
    assert_eq!(told("the write-ahead log is growing"), 1, "must be logged once: {:?}", lines.lock());
    assert_eq!(told("the write-ahead log is short again"), 1, "{:?}", lines.lock());
}

#[test]
fn the_log_starts_over_while_reads_and_writes_go_on_without_a_break() {
    let place = Place::new();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    place.world.read(place.company, |snapshot| account::existing(snapshot, &[account_id(1)]));
                }
            });
        }
        let (mut most, mut number) = (0, 0);
        let begun = Instant::now();
        while place.figures().bytes >= most / 2 && begun.elapsed() < LONG {
            most = most.max(place.figures().bytes);
            place.write_a_megabyte(number);
            number += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(place.figures().bytes < most / 2, "the log grew to {most} bytes and never started over");
    });
}

/// The log output of all tests in this program.
fn captured_log() -> &'static Mutex<Vec<String>> {
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    struct Capture;
    impl std::io::Write for Capture {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            LINES.lock().push(String::from_utf8_lossy(text).into_owned());
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let _ = tracing_subscriber::fmt().with_writer(|| Capture).with_ansi(false).try_init();
    &LINES
}
