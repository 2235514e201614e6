//! The state shared by the writer and the checkpointer: whose turn it is, and how long the log is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::engine::LogFigures;

const CHECKPOINT_EVERY: Duration = Duration::from_millis(250);

/// The write-ahead log of one database.
pub struct Log {
    /// A page and its header.
    frame_bytes: u32,
    turn: Mutex<Turn>,
    changed: Condvar,
    /// The checkpointer is about to ask for a pause.
    short_groups: AtomicBool,
    frames: AtomicU32,
    blocked: AtomicU64,
    failed: AtomicU64,
}

#[derive(Default)]
struct Turn {
    writing: bool,
    has_committed: bool,
    /// The pause that the checkpointer waits for.
    wanted: Option<Duration>,
    /// A pause before every group.
    always: Option<Duration>,
    pause_ends: Option<Instant>,
    closed: bool,
}

impl Log {
    pub fn new(frame_bytes: u32) -> Self {
        Self {
            frame_bytes,
            turn: Mutex::default(),
            changed: Condvar::new(),
            short_groups: AtomicBool::new(false),
            frames: AtomicU32::new(0),
            blocked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    pub fn bytes(&self, frames: u32) -> u64 {
        u64::from(frames) * u64::from(self.frame_bytes)
    }

    /// The writer's handle. Dropping it ends the checkpointer.
    pub fn writer(self: &Arc<Self>) -> Turns {
        Turns(Arc::clone(self))
    }

    pub fn figures(&self) -> LogFigures {
        LogFigures {
            bytes: self.bytes(self.frames.load(Ordering::Relaxed)),
            blocked_checkpoints: self.blocked.load(Ordering::Relaxed),
            failed_checkpoints: self.failed.load(Ordering::Relaxed),
        }
    }

    pub fn note_length(&self, frames: u32) {
        self.frames.store(frames, Ordering::Relaxed);
    }

    pub fn count_blocked(&self) {
        self.blocked.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes the writer pause before every group from now on, or stops doing so.
    pub fn pause_always(&self, limit: Option<Duration>) {
        self.turn.lock().always = limit;
    }

    /// Waits until the next checkpoint is due; returns whether there were commits since the last one, or
    /// `None` once the writer is gone.
    pub fn wait(&self) -> Option<bool> {
        let due = Instant::now() + CHECKPOINT_EVERY;
        let mut turn = self.turn.lock();
        while !turn.closed {
            if self.changed.wait_until(&mut turn, due).timed_out() {
                return Some(std::mem::take(&mut turn.has_committed));
            }
        }
        None
    }

    /// Waits for the writer to pause, and returns the latest time at which the pause ends.
    pub fn pause(&self, limit: Duration) -> Instant {
        let mut turn = self.turn.lock();
        turn.wanted = Some(limit);
        while turn.writing && turn.pause_ends.is_none() && !turn.closed {
            self.changed.wait(&mut turn);
        }
        turn.wanted = None;
        *turn.pause_ends.get_or_insert_with(|| Instant::now() + limit)
    }

    /// Has the writer commit soon, so that little is left to copy when it pauses. Holds until a pause ends.
    pub fn shorten_groups(&self) {
        self.short_groups.store(true, Ordering::Relaxed);
    }

    pub fn end_pause(&self) {
        self.turn.lock().pause_ends = None;
        self.short_groups.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// The writer's turns between pauses.
pub struct Turns(Arc<Log>);

impl Turns {
    /// Pauses if the checkpointer asked for it, no longer than its limit. Then the writer's turn begins.
    pub fn begin(&self) -> WritersTurn<'_> {
        let Log { turn, changed, .. } = &*self.0;
        let mut turn = turn.lock();
        if let Some(limit) = turn.wanted.take().or(turn.always) {
            turn.pause_ends.get_or_insert_with(|| Instant::now() + limit);
            changed.notify_all();
        }
        while let Some(end) = turn.pause_ends {
            if changed.wait_until(&mut turn, end).timed_out() {
                turn.pause_ends = None;
            }
        }
        turn.writing = true;
        WritersTurn { log: &self.0, is_short: self.0.short_groups.load(Ordering::Relaxed) }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.0.turn.lock().closed = true;
        self.0.changed.notify_all();
    }
}

pub struct WritersTurn<'l> {
    log: &'l Log,
    /// A pause comes soon: the less is committed until then, the shorter it is.
    pub is_short: bool,
}

impl Drop for WritersTurn<'_> {
    fn drop(&mut self) {
        let mut turn = self.log.turn.lock();
        turn.writing = false;
        turn.has_committed = true;
        let is_awaited = turn.wanted.is_some();
        drop(turn);
        if is_awaited {
            self.log.changed.notify_all();
        }
    }
}
