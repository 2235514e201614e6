//! Processes that take too long.

use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How long a command may run, or a server may take to start.
const LIMIT: Duration = Duration::from_mins(10);

/// Kills a process that takes too long, so that whatever waits for it fails instead of waiting forever. Dropping it calls
/// it off.
pub struct Deadline {
    _waiting: Sender<()>,
}

impl Deadline {
    pub fn of(process: u32) -> Self {
        let (waiting, called_off) = mpsc::channel();
        thread::spawn(move || {
            if called_off.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                signal(process, "KILL");
            }
        });
        Self { _waiting: waiting }
    }
}

/// Sends a signal to a process.
pub fn signal(process: u32, name: &str) {
    let script = format!("kill -s {name} {process}");
    assert!(Command::new("sh").args(["-c", &script]).status().expect("a shell").success(), "{script}");
}
