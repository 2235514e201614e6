//! How the service is asked to stop, and how the process ends if it does not.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code that a shell reports for a program ended by Ctrl-C.
const ENDED_BY_SIGNAL: i32 = 130;
/// The exit code of a process that was asked to stop and could not stop cleanly.
const NOT_IN_ORDER: i32 = 1;
/// From the signal to the end of the process, whatever the database or anything else does.
const LIMIT: Duration = Duration::from_millis(9_800);

/// SIGTERM and SIGINT, caught from now on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// Shared by the signal watcher and the service.
#[derive(Clone, Default)]
pub struct Stop {
    /// Cancelled at the first signal.
    pub asked: CancellationToken,
    /// Cancelled when everything has stopped.
    pub finished: CancellationToken,
    serving: Arc<AtomicBool>,
}

impl Stop {
    /// From now on there is something to stop cleanly.
    pub fn serving(&self) {
        self.serving.store(true, Ordering::SeqCst);
    }
}

impl Signals {
    pub fn catch() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Asks the service to stop at the first signal. The second signal ends the process immediately: someone is
    /// impatient, and everything that was acknowledged is on disk anyway.
    pub async fn watch(self, stop: CancellationToken, finished: CancellationToken) {
        let stop = Stop { asked: stop, finished, serving: Arc::new(AtomicBool::new(true)) };
        self.watch_over(stop, false).await;
    }

    /// The same for the service. During startup the first signal ends the process immediately: it has not answered
    /// anyone yet, and connecting or migrating may take long. After that, stopping has a time limit.
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
                tracing::warn!(signal = name, "second signal received, exiting immediately");
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

/// Waits on its own thread, so that nothing that hangs elsewhere can delay it.
fn end_after_limit() {
    let end = || {
        thread::sleep(LIMIT);
        tracing::error!("did not stop in time, exiting immediately");
        std::process::exit(NOT_IN_ORDER);
    };
    let _ = thread::Builder::new().name("stop-limit".to_owned()).spawn(end);
}
