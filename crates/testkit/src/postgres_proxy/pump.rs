//! Passes messages between a client and the server, and checks each one for the moment of a fault.

use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use super::{Connection, Fault, Shared};

/// The codes with which a client asks for encryption in place of a protocol version: TLS, GSSAPI.
const ENCRYPTION_REQUESTS: [u32; 2] = [80_877_103, 80_877_104];
/// The server's answer to such a request if it agrees.
pub const ENCRYPTION: u8 = b'S';
const QUERY: u8 = b'Q';
const COMMAND_COMPLETE: u8 = b'C';
/// A type byte, and a length that counts itself but not the type.
const HEADER_BYTES: usize = 5;
const LENGTH_BYTES: usize = 4;
/// Far larger than any message of ours; a stream that announces more is not PostgreSQL's.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

const CHUNK_BYTES: usize = 16 << 10;

#[derive(Clone, Copy)]
enum Direction {
    ToServer,
    ToClient { is_encrypted: bool },
}

/// Starts passing messages on, in both directions.
pub fn start(connection: &Arc<Connection>, shared: &Arc<Shared>) -> io::Result<()> {
    start_one(Direction::ToServer, connection, shared)
}

/// Starts the thread for one direction of a connection.
fn start_one(direction: Direction, connection: &Arc<Connection>, shared: &Arc<Shared>) -> io::Result<()> {
    let (connection, shared) = (Arc::clone(connection), Arc::clone(shared));
    let server = connection.server.as_ref().ok_or(io::ErrorKind::NotConnected)?.try_clone()?;
    let client = connection.client.try_clone()?;
    thread::Builder::new()
        .name("postgres-proxy-pump".to_owned())
        .spawn(move || {
            // A connection may end in any way that its sides choose.
            let _ = match direction {
                Direction::ToServer => to_server(client, server, &connection, &shared),
                Direction::ToClient { is_encrypted: true } => copy(server, client, &connection),
                Direction::ToClient { is_encrypted: false } => {
                    forward(BufReader::new(server), client, |kind, body| {
                        watch_server(kind, body, &connection, &shared)
                    })
                }
            };
            // If the connection is silent, neither side learns that the other has gone.
            if !connection.silent.load(Ordering::SeqCst) {
                shared.forget(&connection);
            }
        })
        .map(drop)
}

/// What happens to a message.
enum Verdict {
    Pass,
    Swallow,
    Stop,
}

fn to_server(
    client: TcpStream,
    mut server: TcpStream,
    connection: &Arc<Connection>,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    loop {
        let mut opening = vec![0; LENGTH_BYTES];
        reader.read_exact(&mut opening)?;
        let length = message_length(&opening)?;
        opening.resize(length, 0);
        reader.read_exact(&mut opening[LENGTH_BYTES..])?;
        let code = opening
            .get(LENGTH_BYTES..)
            .and_then(|rest| rest.first_chunk())
            .map(|code| u32::from_be_bytes(*code));
        server.write_all(&opening)?;
        if !code.is_some_and(|code| ENCRYPTION_REQUESTS.contains(&code)) {
            break;
        }
        let mut answer = [0];
        server.read_exact(&mut answer)?;
        reader.get_mut().write_all(&answer)?;
        if answer[0] == ENCRYPTION {
            start_one(Direction::ToClient { is_encrypted: true }, connection, shared)?;
            return copy(reader, server, connection);
        }
    }
    start_one(Direction::ToClient { is_encrypted: false }, connection, shared)?;
    forward(reader, server, |kind, body| watch_client(kind, body, connection, shared))
}

fn watch_client(kind: u8, body: &[u8], connection: &Connection, shared: &Shared) -> Verdict {
    if connection.silent.load(Ordering::SeqCst) {
        return Verdict::Swallow;
    }
    if kind != QUERY {
        return Verdict::Pass;
    }
    let text = String::from_utf8_lossy(body).trim_end_matches('\0').trim().to_ascii_uppercase();
    if text.starts_with("BEGIN") || text.starts_with("START TRANSACTION") {
        connection.read_only.store(text.contains("READ ONLY"), Ordering::SeqCst);
    }
    let commits = text.trim_end_matches(';') == "COMMIT" && !connection.read_only.load(Ordering::SeqCst);
    match shared.fault() {
        Fault::CutBeforeCommit { every_nth } if commits && shared.is_nth(every_nth) => {
            shared.cut(connection);
            Verdict::Stop
        }
        _ => Verdict::Pass,
    }
}

fn watch_server(kind: u8, body: &[u8], connection: &Connection, shared: &Shared) -> Verdict {
    if connection.silent.load(Ordering::SeqCst) {
        return Verdict::Swallow;
    }
    let committed = kind == COMMAND_COMPLETE
        && body.strip_suffix(&[0]) == Some(b"COMMIT")
        && !connection.read_only.load(Ordering::SeqCst);
    match shared.fault() {
        Fault::CutAfterCommit { every_nth } if committed && shared.is_nth(every_nth) => {
            shared.cut(connection);
            Verdict::Stop
        }
        _ => Verdict::Pass,
    }
}

/// Passes on what it cannot read, unless the connection is silent.
fn copy(mut from: impl io::Read, mut to: TcpStream, connection: &Connection) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        if !connection.silent.load(Ordering::SeqCst) {
            to.write_all(&chunk[..read])?;
        }
    }
}

/// Passes messages on until a side closes or a message has to be the last one.
fn forward(
    mut from: BufReader<TcpStream>,
    to: TcpStream,
    mut watch: impl FnMut(u8, &[u8]) -> Verdict,
) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    let mut message = Vec::new();
    loop {
        let mut header = [0; HEADER_BYTES];
        from.read_exact(&mut header)?;
        let length = message_length(&header[1..])?;
        message.clear();
        message.extend_from_slice(&header);
        message.resize(1 + length, 0);
        from.read_exact(&mut message[HEADER_BYTES..])?;
        match watch(message[0], &message[HEADER_BYTES..]) {
            Verdict::Pass => to.write_all(&message)?,
            Verdict::Swallow => {}
            Verdict::Stop => return Ok(()),
        }
        // Messages that arrived together are passed on together.
        if from.buffer().is_empty() {
            to.flush()?;
        }
    }
}

fn message_length(bytes: &[u8]) -> io::Result<usize> {
    let bytes = bytes.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let length = usize::try_from(u32::from_be_bytes(*bytes)).map_err(io::Error::other)?;
    if (LENGTH_BYTES..=MAX_MESSAGE_BYTES).contains(&length) {
        Ok(length)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "not a PostgreSQL message"))
    }
}
