//! A TLS stream whose writes can fail half-way: hyper itself only ever writes well-formed responses.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What goes wrong with the bytes that hyper writes next.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    None,
    /// Lets this many bytes through and swallows the rest.
    SilenceAfter(usize),
    /// Lets this many bytes through and resets the connection.
    ResetAfter(usize),
}

pub fn set_fault(shared: &Mutex<Fault>, fault: Fault) {
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = fault;
}

pub struct FaultyStream {
    pub tls: TlsStream<TcpStream>,
    pub fault: Arc<Mutex<Fault>>,
}

impl AsyncWrite for FaultyStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut fault = this.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = match &mut *fault {
            Fault::None => return Pin::new(&mut this.tls).poll_write(context, bytes),
            Fault::SilenceAfter(0) => return Poll::Ready(Ok(bytes.len())),
            Fault::ResetAfter(0) => {
                ready!(Pin::new(&mut this.tls).poll_flush(context))?;
                // Without lingering, closing the socket sends a reset instead of a proper end.
                this.tls.get_ref().0.set_zero_linger()?;
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            Fault::SilenceAfter(allowed) | Fault::ResetAfter(allowed) => allowed,
        };
        let part = &bytes[..bytes.len().min(*allowed)];
        let written = ready!(Pin::new(&mut this.tls).poll_write(context, part))?;
        *allowed -= written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_shutdown(context)
    }
}

impl AsyncRead for FaultyStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_read(context, buffer)
    }
}
