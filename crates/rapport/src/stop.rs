//! How the service is asked to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a shell reports for a program that Ctrl-C ended.
const ENDED_BY_SIGNAL: i32 = 130;

/// SIGTERM and SIGINT, caught from here on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub fn catch() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Cancels `stop` at the first signal. The second ends the process at once: someone is impatient,
    /// and what was acknowledged is on the disk anyway.
    pub async fn watch(mut self, stop: CancellationToken, finished: CancellationToken) {
        tokio::select! {
            name = self.next() => tracing::info!(signal = name, "stopping"),
            () = stop.cancelled() => {}
        }
        stop.cancel();
        tokio::select! {
            name = self.next() => {
                tracing::warn!(signal = name, "asked a second time: ending at once");
                std::process::exit(ENDED_BY_SIGNAL);
            }
            () = finished.cancelled() => {}
        }
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
