//! The address of the service, reserved when it starts and opened when it is ready: until then, every connection is
//! refused, and a proxy tries another node instead of waiting for a migration.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpSocket};

use crate::listen_address::ListenAddress;

/// How many connections the system keeps until they are accepted.
const BACKLOG: u32 = 1_024;

pub struct Reserved {
    socket: TcpSocket,
    asked: ListenAddress,
}

impl Reserved {
    /// Reserves the first address that can be had.
    pub fn new(asked: &ListenAddress) -> anyhow::Result<Self> {
        let socket = reserve_first(asked).with_context(|| cannot_listen(asked))?;
        Ok(Self { socket, asked: asked.clone() })
    }

    /// The real address, which is known only now if the port is 0.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.socket.local_addr().context("the listener has no address")
    }

    pub fn open(self) -> anyhow::Result<TcpListener> {
        self.socket.listen(BACKLOG).with_context(|| cannot_listen(&self.asked))
    }
}

fn reserve_first(asked: &ListenAddress) -> io::Result<TcpSocket> {
    let mut failed = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for candidate in asked.candidates()? {
        match reserve(candidate) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn reserve(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Connections of an earlier process may still be ending.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn cannot_listen(address: &ListenAddress) -> String {
    format!("cannot listen on {address} (--listen)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn a_reserved_address_refuses_until_it_is_open() {
        let reserved = Reserved::new(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let address = reserved.address().unwrap();
        assert!(TcpStream::connect(address).await.is_err());
        let _open = reserved.open().unwrap();
        assert!(TcpStream::connect(address).await.is_ok());
        let taken = Reserved::new(&address.to_string().parse().unwrap()).map(|_| ()).unwrap_err();
        assert!(taken.to_string().contains("(--listen)"), "{taken}");
    }
}
