//! How the service is asked to stop, and how it ends when it does not.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a shell reports for a program that Ctrl-C ended.
const ENDED_BY_SIGNAL: i32 = 130;
/// For a process that was asked to stop and could not do so in good order.
const NOT_IN_ORDER: i32 = 1;
/// From the signal to the end, whatever the database or anyone else does.
const LIMIT: Duration = Duration::from_millis(9_800);

/// SIGTERM and SIGINT, caught from here on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// What the watcher of signals and the service tell each other.
#[derive(Clone, Default)]
pub struct Stop {
    /// Cancelled at the first signal.
    pub asked: CancellationToken,
    /// Cancelled when all has ended.
    pub finished: CancellationToken,
    serving: Arc<AtomicBool>,
}

impl Stop {
    /// From here on there is something to end in good order.
    pub fn serving(&self) {
        self.serving.store(true, Ordering::SeqCst);
    }
}

impl Signals {
    pub fn catch() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Asks the service to stop at the first signal. The second ends the process at once: someone is impatient,
    /// and what was acknowledged is on the disk anyway.
    pub async fn watch(self, stop: CancellationToken, finished: CancellationToken) {
        let stop = Stop { asked: stop, finished, serving: Arc::new(AtomicBool::new(true)) };
        self.watch_over(stop, false).await;
    }

    /// The same for the service. While it starts, the first signal ends it at once: it has answered nobody, and
    /// connecting or migrating may take long. Later it ends in limited time.
    pub async fn guard(self, stop: Stop) {
        self.watch_over(stop, true).await;
    }

    async fn watch_over(mut self, stop: Stop, limited: bool) {
        tokio::select! {
            name = self.next() => {
                if !stop.serving.load(Ordering::SeqCst) {
                    tracing::info!(signal = name, "stopped while starting");
                    std::process::exit(0);
                }
                tracing::info!(signal = name, "stopping");
            }
            () = stop.asked.cancelled() => {}
            () = stop.finished.cancelled() => return,
        }
        if limited {
            end_after_limit();
        }
        stop.asked.cancel();
        tokio::select! {
            name = self.next() => {
                tracing::warn!(signal = name, "asked a second time: ending at once");
                std::process::exit(ENDED_BY_SIGNAL);
            }
            () = stop.finished.cancelled() => {}
        }
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// A thread of its own: nothing that hangs elsewhere can hold it up.
fn end_after_limit() {
    let end = || {
        thread::sleep(LIMIT);
        tracing::error!("not stopped in time: ending at once");
        std::process::exit(NOT_IN_ORDER);
    };
    let _ = thread::Builder::new().name("stop-limit".to_owned()).spawn(end);
}
