//! The receiver does what it is told, as a bare TLS client sees it.

use std::io::{self, ErrorKind, Read as _, Write as _};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::behaviour::{BOMB_MEMBER_BYTES, HALF_HEADER_BYTES, RESET_AFTER_BYTES};
use super::*;

const LONG: Duration = Duration::from_secs(20);
/// How long a client listens before it considers the receiver silent.
const SILENCE: Duration = Duration::from_millis(200);

type Connection = StreamOwned<ClientConnection, std::net::TcpStream>;

fn connect_as(receiver: &Receiver, ca_pem: &str, name: &str) -> io::Result<Connection> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).expect("a PEM certificate")).expect("a CA");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = name.to_owned().try_into().expect("a server name");
    let mut session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let mut socket = std::net::TcpStream::connect(receiver.address()).expect("connecting");
    socket.set_read_timeout(Some(LONG)).expect("a read timeout");
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(session, socket))
}

fn connect(receiver: &Receiver) -> Connection {
    connect_as(receiver, receiver.ca_pem(), "127.0.0.1").expect("a trusted connection")
}

fn post(connection: &mut Connection, path: &str, body: &str) {
    let length = body.len();
    write!(
        connection,
        "POST {path} HTTP/1.1\r\nhost: test\r\nx-test: 7\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("sending a request");
}

/// The header block of a response.
fn read_header(connection: &mut Connection) -> String {
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).expect("reading a response header");
        header.push(byte[0]);
    }
    String::from_utf8(header).expect("a header of plain text")
}

/// Reads until nothing comes for a while, and returns what came and how it ended.
fn read_until_silent(connection: &mut Connection) -> (Vec<u8>, io::Result<usize>) {
    connection.sock.set_read_timeout(Some(SILENCE)).expect("a read timeout");
    let mut bytes_read = Vec::new();
    let ended = connection.read_to_end(&mut bytes_read);
    (bytes_read, ended)
}

fn assert_silent(ended: io::Result<usize>) {
    let error = ended.expect_err("the connection was closed instead of kept open");
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
}

#[test]
fn answers_over_a_verified_connection_and_records_the_request() {
    let receiver = Receiver::start();
    let ca_pem = std::fs::read_to_string(receiver.ca_file()).expect("reading the CA file");
    let mut connection = connect_as(&receiver, &ca_pem, "127.0.0.1").expect("a trusted connection");
    for body in ["one", "two"] {
        post(&mut connection, "/hook?a=1", body);
        assert!(read_header(&mut connection).starts_with("HTTP/1.1 200 "));
    }
    let requests = receiver.wait_for(2, LONG);
    let seen: Vec<_> =
        requests.iter().map(|it| (it.method.as_str(), it.path.as_str(), &it.body[..])).collect();
    assert_eq!(seen, [("POST", "/hook?a=1", &b"one"[..]), ("POST", "/hook?a=1", b"two")]);
    assert_eq!(requests[0].header("X-Test"), "7");
    assert_eq!(receiver.connections(), 1);
}

#[test]
fn the_certificate_is_for_its_names_and_of_its_authority_only() {
    let receiver = Receiver::start();
    for name in ["::1", "localhost", "one.receiver.test"] {
        connect_as(&receiver, receiver.ca_pem(), name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(connect_as(&receiver, receiver.ca_pem(), "other.test").is_err());
    let untrusted = Receiver::start_untrusted();
    assert!(connect_as(&untrusted, receiver.ca_pem(), "localhost").is_err());
    assert!(connect_as(&untrusted, untrusted.ca_pem(), "localhost").is_ok());
}

#[test]
fn a_path_goes_before_the_script_and_the_script_before_the_default() {
    let receiver = Receiver::start();
    receiver.answer(Behaviour::Status(503));
    receiver.answer_path("/gone", Behaviour::Status(410));
    let headers = vec![("retry-after".to_owned(), "9".to_owned())];
    receiver.script(vec![
        Behaviour::StatusWith { code: 429, headers, body: b"slower".to_vec() },
        Behaviour::Delay(Duration::from_millis(1), Box::new(Behaviour::Status(204))),
    ]);
    let mut connection = connect(&receiver);
    let mut answer_to = |path| {
        post(&mut connection, path, "");
        let header = read_header(&mut connection);
        if header.contains("content-length: 6") {
            let mut body = [0; 6];
            connection.read_exact(&mut body).expect("reading the body");
            assert_eq!(&body, b"slower");
            assert!(header.contains("retry-after: 9"), "{header}");
        }
        header[9..12].to_owned()
    };
    let answers = ["/gone?now", "/a", "/a", "/a", "/gone"].map(&mut answer_to);
    assert_eq!(answers, ["410", "429", "204", "503", "410"]);
}

#[test]
fn stall_answers_nothing_and_keeps_the_connection() {
    let receiver = Receiver::start();
    receiver.answer(Behaviour::Stall);
    let mut connection = connect(&receiver);
    post(&mut connection, "/", "x");
    receiver.wait_for(1, LONG);
    let (bytes_read, ended) = read_until_silent(&mut connection);
    assert_eq!(bytes_read, b"");
    assert_silent(ended);
}

#[test]
fn half_header_sends_a_piece_and_keeps_the_connection() {
    let receiver = Receiver::start();
    receiver.answer(Behaviour::HalfHeader);
    let mut connection = connect(&receiver);
    post(&mut connection, "/", "x");
    receiver.wait_for(1, LONG);
    let (bytes_read, ended) = read_until_silent(&mut connection);
    assert_eq!(bytes_read.len(), HALF_HEADER_BYTES);
    assert!(bytes_read.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_silent(ended);
}

#[test]
fn reset_breaks_off_inside_the_body() {
    let receiver = Receiver::start();
    receiver.answer(Behaviour::Reset);
    let mut connection = connect(&receiver);
    post(&mut connection, "/", "x");
    let mut bytes_read = Vec::new();
    let error = connection.read_to_end(&mut bytes_read).expect_err("a reset, not an end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    assert!(bytes_read.len() <= RESET_AFTER_BYTES);
    // The receiver itself keeps running.
    receiver.answer(Behaviour::Status(200));
    let mut connection = connect(&receiver);
    post(&mut connection, "/", "x");
    assert!(read_header(&mut connection).starts_with("HTTP/1.1 200 "));
}

#[test]
fn slow_and_endless_bodies_keep_coming() {
    let receiver = Receiver::start();
    receiver.answer_path("/slow", Behaviour::SlowBody { byte_every: Duration::from_millis(1) });
    receiver.answer_path("/endless", Behaviour::EndlessBody);
    for (path, enough) in [("/slow", 20), ("/endless", 10 * 1024 * 1024)] {
        let mut connection = connect(&receiver);
        post(&mut connection, path, "x");
        let header = read_header(&mut connection);
        assert!(header.contains("transfer-encoding: chunked"), "{header}");
        let bytes_read = io::copy(&mut (&mut connection).take(enough), &mut io::sink()).expect("a body");
        assert_eq!(bytes_read, enough, "{path}");
    }
}

#[test]
fn the_gzip_bomb_is_gzip_and_large() {
    let receiver = Receiver::start();
    receiver.answer(Behaviour::GzipBomb);
    let mut connection = connect(&receiver);
    post(&mut connection, "/", "x");
    let header = read_header(&mut connection);
    assert!(header.contains("content-encoding: gzip"), "{header}");
    let enough = 3 * BOMB_MEMBER_BYTES as u64;
    let mut unpacked = flate2::read::MultiGzDecoder::new(connection).take(enough);
    assert_eq!(io::copy(&mut unpacked, &mut io::sink()).expect("unpacking"), enough);
}

#[test]
#[should_panic(expected = "expected 2 requests within 1ms, 1 arrived over 1 connections:\n  POST /only\n")]
fn waiting_in_vain_says_what_arrived() {
    let receiver = Receiver::start();
    let mut connection = connect(&receiver);
    post(&mut connection, "/only", "x");
    receiver.wait_for(1, LONG);
    receiver.wait_for(2, Duration::from_millis(1));
}

#[test]
fn dropping_the_receiver_closes_its_port() {
    let receiver = Receiver::start();
    let address = receiver.address();
    let _open = connect(&receiver);
    drop(receiver);
    let refused = std::net::TcpStream::connect(address).expect_err("the port is still open");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}
