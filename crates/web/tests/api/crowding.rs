//! One client cannot shut out the others with slow bodies, connections, live streams or mails.

use std::net::Ipv4Addr;
use std::time::Duration;

use rapport_domain::member::Role;
use rapport_testkit::Engine;
use rapport_web::Config;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::harness::{Server, Tenant, UPSERT, on_both_engines};
use crate::inbound;
use crate::person::Person;

on_both_engines! {
    slow_bodies_of_one_address_leave_connections_for_others,
    slow_heads_of_one_address_leave_connections_for_others,
    an_address_has_a_limit_for_slow_bodies_but_not_for_quick_ones,
    a_stream_tells_at_once_only_who_has_an_old_version,
    a_session_keeps_its_newest_streams,
    streams_of_one_session_leave_some_for_others,
    streams_of_one_address_leave_some_for_others,
    slow_mails_of_one_company_leave_room_for_others,
}

/// The address of the greedy client. The others use `127.0.0.1`.
const CROWD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const HOME: Ipv4Addr = Ipv4Addr::LOCALHOST;
const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than any test, so that nothing becomes free because of a timeout.
const FOR_EVER: Duration = Duration::from_hours(1);
const MANY: usize = 300;

async fn crowded(engine: Engine, adjust: impl FnOnce(&mut Config)) -> Server {
    let patient = |config: &mut Config| {
        config.header_timeout = FOR_EVER;
        config.body_timeout = FOR_EVER;
        config.request_timeout = FOR_EVER;
        config.slow_after = FOR_EVER;
        adjust(config);
    };
    Server::with(engine, patient).await
}

/// Connects from an address and sends a text.
async fn send(server: &Tenant, from: Ipv4Addr, text: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((from, 0).into()).expect("an address of this machine");
    let mut stream = socket.connect(server.address).await.expect("a connection");
    // A refused connection may already be closed.
    let _ = stream.write_all(text.as_bytes()).await;
    stream
}

/// The raw text of an upsert with only this many bytes of its body.
fn upsert(server: &Tenant, imported_id: &str, bytes: usize) -> String {
    let body = json!({"project": server.slug(), "imported_id": imported_id}).to_string();
    let head = format!(
        "POST {UPSERT} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.company.token_text(),
        body.len()
    );
    format!("{head}{}", &body[..bytes.min(body.len())])
}

/// Reads until this text arrives and returns everything read.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(end) {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                break;
            }
        }
    };
    let ended = timeout(PATIENCE, reading).await;
    let text = String::from_utf8_lossy(&read).into_owned();
    assert!(ended.is_ok() && text.contains(end), "{end:?} is not in {text:?}");
    text
}

/// Reads until the server closes the connection. Empty if the connection is refused without a response.
async fn read_all(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut read)).await.expect("an end");
    String::from_utf8_lossy(&read).into_owned()
}

/// Sends requests from the greedy client's address until one gets this status.
async fn looks_until(server: &Tenant, status: &str) -> String {
    let look = "GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let looking = async {
        loop {
            let answer = read_all(&mut send(server, CROWD, look).await).await;
            if answer.starts_with(&format!("HTTP/1.1 {status}")) {
                return answer;
            }
        }
    };
    timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never answered {status}"))
}

/// Others are served while the greedy client holds its connections. It is told why it gets no more, and gets more once
/// it closes some.
async fn leaves_connections_for_others(server: &Server, slow: &str) {
    let mut held = Vec::new();
    for _ in 0..MANY {
        held.push(send(server, CROWD, slow).await);
    }
    server.account(json!({"imported_id": "of-others"})).await;
    // Only a few are told why at the same time, and only after they have sent a request. The others are closed.
    let refused = looks_until(server, "429").await;
    assert!(refused.contains("retry-after: 1") && refused.contains("too_many_connections"), "{refused}");
    held.clear();
    looks_until(server, "200").await;
}

async fn slow_bodies_of_one_address_leave_connections_for_others(engine: Engine) {
    let server = crowded(engine, |config| config.max_connections = 40).await;
    leaves_connections_for_others(&server, &upsert(&server, "slow", 5)).await;
}

async fn slow_heads_of_one_address_leave_connections_for_others(engine: Engine) {
    let server = crowded(engine, |config| config.max_connections = 40).await;
    leaves_connections_for_others(&server, "GET /health/live HTTP/1.1\r\nHos").await;
}

async fn an_address_has_a_limit_for_slow_bodies_but_not_for_quick_ones(engine: Engine) {
    let adjust = |config: &mut Config| {
        config.max_connections = 40;
        config.slow_after = Duration::from_millis(20);
    };
    let server = crowded(engine, adjust).await;
    let (answers, mut answered) = mpsc::unbounded_channel();
    // Ten may be slow at once.
    let slow: Vec<_> = (0..14)
        .map(|number| {
            let (text, answers) = (upsert(&server, &format!("slow-{number}"), 5), answers.clone());
            let address = server.address;
            tokio::spawn(async move {
                let socket = TcpSocket::new_v4().expect("a socket");
                socket.bind((CROWD, 0).into()).expect("an address of this machine");
                let mut stream = socket.connect(address).await.expect("a connection");
                stream.write_all(text.as_bytes()).await.expect("sent");
                let mut read = Vec::new();
                let _ = stream.read_to_end(&mut read).await;
                let _ = answers.send(String::from_utf8_lossy(&read).into_owned());
            })
        })
        .collect();
    for _ in 0..4 {
        let answer = timeout(PATIENCE, answered.recv()).await.expect("four are refused").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_too_slow"), "{answer}");
    }
    // A body that arrives at once is never counted.
    for number in 0..5 {
        let text = upsert(&server, &format!("quick-{number}"), usize::MAX);
        let answer = read_all(&mut send(&server, CROWD, &text).await).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    assert!(answered.try_recv().is_err(), "ten are still waiting");
    // Slow bodies from other addresses are not affected.
    let text = upsert(&server, "of-others", usize::MAX);
    let (begin, rest) = text.split_at(text.len() - 5);
    let mut other = send(&server, HOME, begin).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    other.write_all(rest.as_bytes()).await.expect("sent");
    let answer = read_all(&mut other).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    slow.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Opens a live stream and returns it with what has arrived so far.
async fn listen(server: &Tenant, from: Ipv4Addr, person: &Person<'_>) -> (TcpStream, String) {
    let text = format!("GET /live HTTP/1.1\r\nHost: x\r\nCookie: {}\r\n\r\n", person.cookie);
    let mut stream = send(server, from, &text).await;
    let head = read_until(&mut stream, "\r\n\r\n").await;
    (stream, head)
}

/// Asserts that this stream is notified of a change.
async fn hears_of_changes(server: &Tenant, stream: &mut TcpStream, imported_id: &str) {
    server.account(json!({"imported_id": imported_id})).await;
    read_until(stream, "event: changed").await;
}

/// The version of a page as it is now.
async fn version(person: &Person<'_>) -> String {
    let page = person.see("/accounts").await.expect(200);
    let found = page.0.text().split("data-version=\"").nth(1).and_then(|rest| rest.split('"').next());
    found.expect("a version").to_owned()
}

async fn a_stream_tells_at_once_only_who_has_an_old_version(engine: Engine) {
    let server = crowded(engine, |_| {}).await;
    let ana = Person::of(&server, Role::Member);
    // The first message may arrive together with the head, so nothing of it may be read and dropped.
    let open = async |version: &str, end: &str| {
        let head =
            format!("GET /live?version={version} HTTP/1.1\r\nHost: x\r\nCookie: {}\r\n\r\n", ana.cookie);
        let mut stream = send(&server, HOME, &head).await;
        let read = read_until(&mut stream, end).await;
        (stream, read)
    };
    let before = version(&ana).await;
    server.account(json!({"imported_id": "between"})).await;
    let now = version(&ana).await;
    assert_ne!(before, now);
    let (mut current, read) = open(&now, "\r\n\r\n").await;
    assert!(!read.contains("event: changed"), "{read}");
    for old in [before.as_str(), "", "another.1"] {
        open(old, "event: changed").await;
    }
    // It was opened first, and would have been told first.
    let mut said = [0; 1];
    assert!(current.try_read(&mut said).is_err(), "a page that is up to date is not loaded again");
    hears_of_changes(&server, &mut current, "after").await;
}

async fn a_session_keeps_its_newest_streams(engine: Engine) {
    let server = crowded(engine, |_| {}).await;
    let (ana, bo) = (Person::of(&server, Role::Member), Person::of(&server, Role::Member));
    let mut other = listen(&server, HOME, &bo).await.0;
    let mut streams = Vec::new();
    for _ in 0..5 {
        let (stream, head) = listen(&server, HOME, &ana).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        streams.push(stream);
    }
    let mut oldest = streams.remove(0);
    // The script is told not to reconnect immediately, and the response ends.
    read_until(&mut oldest, "event: crowded\ndata: closed\n\n\r\n0\r\n\r\n").await;
    for (number, stream) in streams.iter_mut().chain([&mut other]).enumerate() {
        hears_of_changes(&server, stream, &format!("crm-{number}")).await;
    }
}

async fn streams_of_one_session_leave_some_for_others(engine: Engine) {
    let server = crowded(engine, |config| config.max_streams = 10).await;
    let (ana, bo) = (Person::of(&server, Role::Member), Person::of(&server, Role::Member));
    let mut held = Vec::new();
    for _ in 0..MANY {
        let (stream, head) = listen(&server, HOME, &ana).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        held.push(stream);
    }
    let (mut stream, head) = listen(&server, HOME, &bo).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    hears_of_changes(&server, &mut stream, "crm-1").await;
}

async fn streams_of_one_address_leave_some_for_others(engine: Engine) {
    let server = crowded(engine, |config| config.max_streams = 10).await;
    let mut held = Vec::new();
    let mut opened = 0;
    for _ in 0..4 {
        let person = Person::of(&server, Role::Member);
        for _ in 0..3 {
            let (stream, head) = listen(&server, CROWD, &person).await;
            opened += usize::from(head.starts_with("HTTP/1.1 200"));
            held.push(stream);
        }
    }
    assert_eq!(opened, 5, "one address gets half of them");
    let bo = Person::of(&server, Role::Member);
    let (mut stream, head) = listen(&server, HOME, &bo).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    hears_of_changes(&server, &mut stream, "crm-1").await;
}

async fn slow_mails_of_one_company_leave_room_for_others(engine: Engine) {
    let server = crowded(engine, |_| {}).await;
    let (slow, globex) = (inbound::key_of(&server.company), server.app.company("globex"));
    // Each may be as long as a mail can be. The service asks for the body once it has room.
    let text = format!(
        "POST {} HTTP/1.1\r\nHost: x\r\nX-Service-Inbound-Key: {slow}\r\nContent-Type: message/rfc822\r\n\
         Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        inbound::INBOUND
    );
    let mut held = Vec::new();
    for number in 0..20 {
        let mut stream = send(&server, HOME, &text).await;
        if number < 3 {
            read_until(&mut stream, "100 Continue").await;
        }
        held.push(stream);
    }
    let key = inbound::key_of(&globex);
    let call = server.post(inbound::INBOUND).without_credential().header("x-service-inbound-key", &key);
    call.text(inbound::MAIL).header("content-type", "message/rfc822").send().await.expect(201);
}
