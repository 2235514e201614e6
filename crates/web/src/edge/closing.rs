//! Stops accepting connections without breaking one that a client has just opened.
//!
//! A proxy that cannot connect tries the next node, because nothing was sent. If its connection breaks after it sent a
//! POST, it must not: the request may have been carried out. So behind a proxy we stop in this order:
//!
//! 1. The service says that it isn't ready, and every response says that its connection is about to close.
//! 2. New connections are ignored, those that are already open in the kernel's queue are served, and then the listener
//!    is closed. A proxy that connects from now on is refused.
//! 3. Connections without a request stay open until the proxy has closed them, as it must after a shorter time than
//!    ours.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How long connections that were being opened may take to arrive in the queue.
const SETTLE: Duration = Duration::from_millis(200);

/// How much longer a service behind a proxy serves after it was asked to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drain {
    /// New connections are accepted for this long.
    pub accepting: Duration,
    /// Connections without a request are closed after this time.
    pub idle: Duration,
}

impl Drain {
    pub fn is_used(self) -> bool {
        self != Self::default()
    }

    /// Ends when the listener may be closed, after what is left in its queue. Returns when the service was asked to
    /// stop.
    pub async fn close(self, listener: &TcpListener, shutdown: &CancellationToken) -> Instant {
        shutdown.cancelled().await;
        let asked_at = Instant::now();
        if self.is_used() {
            sleep(self.accepting).await;
            ignore_new_connections(listener);
            sleep(SETTLE).await;
        }
        asked_at
    }
}

/// Has the kernel drop the first packet of new connections, as if it were lost. Their clients send it again a second
/// later and are refused then.
#[cfg(target_os = "linux")]
fn ignore_new_connections(listener: &TcpListener) {
    use socket2::{SockFilter, SockRef};

    /// The offset of the flags in a TCP header, and the flag of the first packet.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let program = [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(JUMP_IF_SET, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    if let Err(error) = SockRef::from(listener).attach_filter(&program) {
        tracing::debug!(%error, "failed to ignore new connections");
    }
}

/// Elsewhere a connection that opens in the very moment of the end is reset.
#[cfg(not(target_os = "linux"))]
fn ignore_new_connections(_: &TcpListener) {}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    #[tokio::test]
    async fn connections_in_the_queue_are_served_and_later_ones_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _early = TcpStream::connect(address).await.unwrap();
        ignore_new_connections(&listener);
        let late = tokio::spawn(TcpStream::connect(address));
        listener.accept().await.expect("the early connection");
        let more = timeout(SETTLE, listener.accept()).await;
        assert!(more.is_err(), "the late connection is not in the queue");
        drop(listener);
        assert!(late.await.unwrap().is_err(), "the late connection is refused");
    }
}
