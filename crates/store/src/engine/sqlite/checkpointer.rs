//! Keeps the write-ahead log short without ever making the writer wait for a reader or for the database file.
//!
//! SQLite appends every commit to the log; a checkpoint copies the log into the database file and syncs it.
//! Once all of it is copied and nobody reads from it, the next commit starts the log over. Three facts about
//! SQLite's `walCheckpoint` shape this module:
//!
//! - A PASSIVE checkpoint waits for nobody and blocks no writer. Whatever it costs, only this thread pays.
//! - It syncs the database file only when it has reached the end of the log. Under constant writing it never
//!   does, because the writer has appended more by then. So nothing is synced until something pauses the
//!   writer, and then everything at once, which took the writer a second when it did that itself.
//! - The other modes hold the write lock while they copy, sync and wait for readers.
//!
//! So the checkpointer copies with PASSIVE and then syncs the file itself, both while the writer works. It does so in
//! small steps, because a commit has to wait for a sync that is under way, but not for every few pages, because each step
//! has its sync. Once the log is long enough and little of it
//! is left to copy, it asks the writer for a pause between two groups. Groups keep their usual length at first: shorter
//! ones leave less to do in the pause, but each pays for a commit, so requests wait longer behind them. They
//! get shorter only if the disk needs that, after a try that failed. During the pause it copies the little that is
//! left, which makes SQLite sync the file, and then starts the log over (RESTART, which has nothing left to copy or
//! sync by then). The pause ends when that is done, or at its limit, whatever the checkpointer is doing: the writer
//! waits on a clock, not on the disk. If the sync takes longer, it continues while the writer works; the next try only
//! has to sync what was added since, and the log has grown a little. If a reader holds a snapshot open, no further
//! pause is requested until the reader has moved on.
//!
//! A disk that syncs more slowly than the writer writes would never catch up. Past `FULL_BYTES` the writer
//! therefore pauses before every group, still with the same limit.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::connection::Conn;
use super::disk::Disk;
use super::files::Files;
use super::from_sqlite;
use super::log::Log;
use crate::error::Error;

/// The log is started over once it is this long.
const RESTART_BYTES: u64 = 64 << 20;
/// A log of this length is reported as growing.
const LONG_BYTES: u64 = 2 * RESTART_BYTES;
/// A slow disk can't make the log grow much beyond this.
const FULL_BYTES: u64 = 8 * RESTART_BYTES;
/// The size that the file is truncated to when the log starts over after it has grown.
pub const MOST_FILE_BYTES: i64 = (2 * RESTART_BYTES).cast_signed();
/// Copied frames are synced once there are this many (2 MiB, if the pages are those of a new database).
const SYNC_FRAMES: u32 = 1_024;
/// How long fewer frames than that may wait to be copied.
const LONGEST_REST: Duration = Duration::from_secs(5);
/// How much of the log may be left for a pause that comes between groups of the usual length.
const PAUSE_FRAMES: u32 = 3 * SYNC_FRAMES;
/// How long the writer may be asked to pause. A pause ends sooner if the log is started over sooner.
const LONGEST_PAUSE: Duration = Duration::from_millis(150);
/// How many times a restart is attempted before the checkpointer sleeps again.
const TRIES: usize = 4;
/// How many passes the checkpointer makes over newly added frames before it gives up on a pause for now.
const CATCHING_UP: usize = 6;
/// How long to wait for a short read that delays the end of a pause.
const BREATH: Duration = Duration::from_millis(1);

/// The progress of a checkpoint. Frames appended in the meantime make no difference: `frames` is the length
/// of the log when it began, so frames that aren't `copied` are still being read.
#[derive(Debug, Clone, Copy)]
struct Progress {
    frames: u32,
    copied: u32,
}

impl Progress {
    fn is_complete(self) -> bool {
        self.copied >= self.frames
    }

    fn left(self) -> u32 {
        self.frames.saturating_sub(self.copied)
    }
}

/// Runs alongside the writer for as long as there is one.
pub struct Checkpointer {
    connection: Conn,
    disk: Disk,
    log: Arc<Log>,
    files: Files,
    has_more: bool,
    last_round: Instant,
    /// How many frames of the log are copied and synced.
    synced: u32,
    /// How far the log was copied when a reader used up a pause.
    stuck_at: Option<u32>,
    is_long: bool,
    is_failing: bool,
}

impl Checkpointer {
    pub fn new(connection: Conn, disk: Disk, log: Arc<Log>, files: Files) -> Self {
        Self {
            connection,
            disk,
            log,
            files,
            has_more: false,
            last_round: Instant::now(),
            synced: 0,
            stuck_at: None,
            is_long: false,
            is_failing: false,
        }
    }

    /// Ends with the writer and returns its connection and the file.
    pub fn run(mut self) -> (Conn, Disk) {
        while let Some(has_committed) = self.log.wait() {
            // The writer checks at every commit; this is for a service that has nothing to write.
            let _ = self.files.check();
            if has_committed || self.has_more {
                self.has_more = true;
                if self.is_worthwhile() {
                    self.round();
                }
            }
        }
        (self.connection, self.disk)
    }

    fn is_worthwhile(&self) -> bool {
        let left = self.checkpoint("NOOP").ok().flatten().map(Progress::left);
        left.is_none_or(|left| left >= SYNC_FRAMES) || self.last_round.elapsed() >= LONGEST_REST
    }

    fn round(&mut self) {
        self.last_round = Instant::now();
        for attempt in 0..TRIES {
            let Some(progress) = self.copy_and_sync(SYNC_FRAMES) else { return };
            self.has_more = !progress.is_complete();
            let is_stuck = self.stuck_at == Some(progress.copied) && !progress.is_complete();
            // Short reads leave a little of the log behind; a snapshot that is held open leaves more and more.
            let is_blocked = is_stuck || self.log.bytes(progress.left()) > RESTART_BYTES / 2;
            self.note(progress.frames, is_blocked);
            if self.log.bytes(progress.frames) < RESTART_BYTES || is_blocked {
                return;
            }
            let is_restarted = self.catch_up(attempt > 0) && {
                let end = self.log.pause(LONGEST_PAUSE);
                self.restart(end)
            };
            self.log.end_pause();
            if is_restarted {
                self.synced = 0;
                return self.note(0, false);
            }
        }
    }

    /// Gets close to the end of the log before the writer has to pause. If the writer's groups are short meanwhile, each
    /// pass finds less. Returns whether a pause is worthwhile.
    fn catch_up(&mut self, with_short_groups: bool) -> bool {
        let least = if with_short_groups { SYNC_FRAMES } else { PAUSE_FRAMES };
        if with_short_groups {
            self.log.shorten_groups();
        }
        for _ in 0..CATCHING_UP {
            let before = self.synced;
            match self.copy_and_sync(least) {
                None => return false,
                Some(progress) if self.synced == before || self.log.bytes(progress.frames) > FULL_BYTES => {
                    return true;
                }
                Some(_) => {}
            }
        }
        false
    }

    /// Copies what nobody reads any more while the writer works, and syncs it if at least this much isn't yet.
    fn copy_and_sync(&mut self, least: u32) -> Option<Progress> {
        let progress = self.copy()?;
        if progress.copied < self.synced {
            // The log has started over.
            self.synced = 0;
        }
        // SQLite may have synced it, but only if the writer added nothing before the copy reached the end.
        if progress.copied - self.synced >= least {
            if let Err(error) = self.disk.sync() {
                self.fail(&error);
                return None;
            }
            self.synced = progress.copied;
        }
        Some(progress)
    }

    fn copy(&mut self) -> Option<Progress> {
        match self.checkpoint("PASSIVE") {
            Ok(progress) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("checkpoints succeed again");
                }
                // Another process is running a checkpoint; whatever it leaves is for the next round.
                self.has_more = progress.is_none();
                progress
            }
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    fn fail(&mut self, error: &Error) {
        self.log.count_failed();
        self.has_more = true;
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(%error, "checkpoints failing; the write-ahead log grows until they succeed");
        }
    }

    /// Copies the rest and makes the next commit start the log over, while the writer pauses.
    fn restart(&mut self, end: Instant) -> bool {
        self.stuck_at = None;
        while Instant::now() < end {
            let Some(progress) = self.copy() else { return false };
            if progress.is_complete() {
                return self.start_over(end);
            }
            self.stuck_at = Some(progress.copied);
            thread::sleep(BREATH);
        }
        false
    }

    fn start_over(&mut self, end: Instant) -> bool {
        // Another process may have written in the meantime. RESTART would copy and sync that under the write
        // lock.
        let still_complete = matches!(self.checkpoint("NOOP"), Ok(Some(progress)) if progress.is_complete());
        let left = end.saturating_duration_since(Instant::now());
        if !still_complete || left.is_zero() {
            return false;
        }
        // Reads that began before the end was reached still use the log; those that begin now don't.
        let waits = self.connection.sqlite.busy_timeout(left);
        let restarted = waits.map_err(from_sqlite).and_then(|()| self.checkpoint("RESTART"));
        matches!(restarted, Ok(Some(_)))
    }

    /// `None` if another process is running a checkpoint, or readers were in the way of a RESTART.
    fn checkpoint(&self, mode: &str) -> Result<Option<Progress>, Error> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let columns = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (busy, frames, copied): (bool, i64, i64) =
            self.connection.sqlite.query_row(&sql, [], columns).map_err(from_sqlite)?;
        let count = |number: i64| u32::try_from(number).unwrap_or(0);
        Ok((!busy).then(|| Progress { frames: count(frames), copied: count(copied) }))
    }

    fn note(&mut self, frames: u32, is_blocked: bool) {
        self.log.note_length(frames);
        let bytes = self.log.bytes(frames);
        if is_blocked && bytes >= RESTART_BYTES {
            self.log.count_blocked();
        }
        self.log.pause_always((bytes > FULL_BYTES && !is_blocked).then_some(LONGEST_PAUSE));
        let megabytes = bytes >> 20;
        if bytes >= LONG_BYTES && !self.is_long {
            self.is_long = true;
            let reason =
                if is_blocked { "a reader holds an old snapshot open" } else { "the disk is too slow" };
            tracing::warn!(frames, megabytes, reason, "the write-ahead log is growing");
        } else if bytes < RESTART_BYTES && self.is_long {
            self.is_long = false;
            tracing::info!(frames, "the write-ahead log is short again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sqlite::{frame_bytes, open};
    use crate::health::Health;

    fn left(checkpointer: &Checkpointer) -> u32 {
        checkpointer.checkpoint("NOOP").unwrap().unwrap().left()
    }

    #[test]
    fn a_few_pages_are_copied_with_others_or_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rapport.db");
        let writer = open(&path, 1 << 20, false).unwrap();
        writer.sqlite.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        writer.sqlite.execute("CREATE TABLE text (text TEXT)", []).unwrap();
        let write = |bytes: u32| {
            writer.sqlite.execute("INSERT INTO text VALUES (hex(zeroblob(?1 / 2)))", [bytes]).unwrap();
        };
        let log = Arc::new(Log::new(frame_bytes(&writer.sqlite).unwrap()));
        let files = Files::watch(&path, Arc::new(Health::default())).unwrap();
        let (connection, disk) = (open(&path, 1 << 20, false).unwrap(), Disk::of(&path, false).unwrap());
        let mut checkpointer = Checkpointer::new(connection, disk, log, files);

        write(1_000);
        assert!(left(&checkpointer) > 0 && !checkpointer.is_worthwhile(), "a few can wait");
        write(SYNC_FRAMES * 2_048);
        assert!(checkpointer.is_worthwhile(), "many can't");
        checkpointer.round();
        assert!(left(&checkpointer) == 0 && !checkpointer.is_worthwhile());

        write(1_000);
        assert!(!checkpointer.is_worthwhile());
        checkpointer.last_round = Instant::now().checked_sub(LONGEST_REST).unwrap();
        assert!(checkpointer.is_worthwhile(), "they have waited long");
    }
}
