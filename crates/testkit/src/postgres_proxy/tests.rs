//! The proxy's faults, each seen by its own client.

use std::io::{Read as _, Write as _};
use std::time::Instant;

use ::postgres::{Client, Config, NoTls};

use super::pump::ENCRYPTION;
use super::*;
use crate::PostgresServer;

const LIMIT: Duration = Duration::from_secs(30);
/// The answer of a server without TLS.
const NO_ENCRYPTION: u8 = b'N';
/// Long enough that an answer that does come fails the test.
const QUIET: Duration = Duration::from_millis(300);

struct Bench {
    direct: Client,
    proxy: PostgresProxy,
}

impl Bench {
    fn start() -> Self {
        let url = PostgresServer::shared().fresh_database();
        let mut direct = Client::connect(&url, NoTls).expect("connecting directly");
        direct.batch_execute("CREATE TABLE kept (id int)").expect("creating a table");
        Self { direct, proxy: PostgresProxy::start(&url) }
    }

    fn client(&self) -> Client {
        Client::connect(self.proxy.url(), NoTls).expect("connecting through the proxy")
    }

    fn rows(&mut self) -> i64 {
        self.direct.query_one("SELECT count(*) FROM kept", &[]).expect("counting").get(0)
    }
}

fn insert(client: &mut Client) -> Result<(), ::postgres::Error> {
    let mut transaction = client.transaction()?;
    transaction.execute("INSERT INTO kept VALUES ($1)", &[&1])?;
    transaction.commit()
}

fn read(client: &mut Client) -> Result<(), ::postgres::Error> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    client.query("SELECT * FROM kept", &[])?;
    client.batch_execute("COMMIT")
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "waited {LIMIT:?} for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a statement on its own thread; the handle tells when it has ended, and how.
fn in_background(mut client: Client) -> JoinHandle<bool> {
    thread::spawn(move || insert(&mut client).is_ok())
}

#[test]
fn the_server_is_named_by_the_url() {
    assert_eq!(address_in("postgres://postgres@127.0.0.1:5432/test_1"), "127.0.0.1:5432");
    assert_eq!(address_in("postgresql://a:b@127.0.0.1:1?application_name=x"), "127.0.0.1:1");
}

#[test]
fn without_a_fault_everything_passes() {
    let mut bench = Bench::start();
    let mut client = bench.client();
    insert(&mut client).expect("inserted");
    let large = "x".repeat(1 << 20);
    let back: String = client.query_one("SELECT $1::text", &[&large]).expect("echoed").get(0);
    assert_eq!(back.len(), large.len());
    assert_eq!((bench.rows(), bench.proxy.cuts(), bench.proxy.open_connections()), (1, 0, 1));
    drop(client);
    wait_until("the connection to end", || bench.proxy.open_connections() == 0);
}

#[test]
fn a_request_for_encryption_is_passed_on() {
    let servers = [PostgresServer::shared(), PostgresServer::shared_over_tls()];
    for (server, expected) in servers.into_iter().zip([NO_ENCRYPTION, ENCRYPTION]) {
        let proxy = PostgresProxy::start(&server.fresh_database());
        let mut stream = TcpStream::connect(proxy.address).expect("connected");
        stream.write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]).expect("asked");
        let mut answer = [0];
        stream.read_exact(&mut answer).expect("answered");
        assert_eq!(answer[0], expected);
    }
}

#[test]
fn a_cut_after_the_commit_hides_what_was_committed() {
    let mut bench = Bench::start();
    bench.proxy.cut_after_commit(2);
    let mut client = bench.client();
    read(&mut client).expect("reads do not count");
    insert(&mut client).expect("the first commit passes");
    read(&mut client).expect("reads do not count");
    insert(&mut client).expect_err("the second does not");
    assert!(client.is_closed());
    assert_eq!((bench.rows(), bench.proxy.cuts()), (2, 1), "both were committed");

    bench.proxy.heal();
    let mut client = bench.client();
    insert(&mut client).expect("healed");
    insert(&mut client).expect("healed");
    assert_eq!((bench.rows(), bench.proxy.cuts()), (4, 1));
}

#[test]
fn a_cut_before_the_commit_undoes() {
    let mut bench = Bench::start();
    bench.proxy.cut_before_commit(2);
    let mut client = bench.client();
    insert(&mut client).expect("the first commit passes");
    read(&mut client).expect("reads do not count");
    insert(&mut client).expect_err("the second does not");
    assert_eq!((bench.rows(), bench.proxy.cuts()), (1, 1));
    // The server's side was closed too: the transaction is over, and nobody waits for its locks.
    bench.direct.batch_execute("SET lock_timeout = '20s'").expect("set");
    bench.direct.batch_execute("TRUNCATE kept").expect("the locks are free");
}

#[test]
fn silence_keeps_connections_open_and_answers_nothing() {
    let mut bench = Bench::start();
    let (mut early, other) = (bench.client(), bench.client());
    insert(&mut early).expect("inserted");
    bench.proxy.silence_open();
    let waiting = in_background(early);
    let mut late = bench.client();
    insert(&mut late).expect("a new connection works");
    thread::sleep(QUIET);
    assert!(!waiting.is_finished(), "a silent connection answered");
    bench.proxy.heal();
    thread::sleep(QUIET);
    assert!(!waiting.is_finished(), "silent connections stay silent");
    assert_eq!(bench.rows(), 2);

    bench.proxy.silence();
    let mut config: Config = bench.proxy.url().parse().expect("a URL");
    config.connect_timeout(QUIET);
    assert!(TcpStream::connect(bench.proxy.address).is_ok(), "a new connection is accepted");
    let starting = thread::spawn(move || config.connect(NoTls).is_ok());
    thread::sleep(QUIET);
    assert!(!late.is_closed() && !other.is_closed(), "silence closes nothing");
    bench.proxy.heal();
    bench.proxy.cut_all();
    assert!(!waiting.join().expect("ended"), "the statement succeeded");
    assert!(!starting.join().expect("ended"), "the new connection got an answer");
    insert(&mut bench.client()).expect("healed");
    assert_eq!(bench.rows(), 3);
}

#[test]
fn refused_connections_come_back_when_healed() {
    let mut bench = Bench::start();
    let mut client = bench.client();
    insert(&mut client).expect("inserted");
    bench.proxy.refuse();
    assert!(insert(&mut client).is_err(), "an old connection works on");
    assert!(Client::connect(bench.proxy.url(), NoTls).is_err(), "a new connection works");
    bench.proxy.heal();
    insert(&mut bench.client()).expect("healed");
    assert_eq!(bench.rows(), 2);
}
