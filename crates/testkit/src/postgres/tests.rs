use super::*;

/// Set for the copy of this test program that is started in order to be killed.
const VICTIM: &str = "RAPPORT_TESTKIT_VICTIM";

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).expect("connecting to the fresh database")
}

fn row_count(client: &mut Client) -> i64 {
    client.query_one("SELECT count(*) FROM kept", &[]).expect("counting the rows").get(0)
}

#[test]
fn the_shared_server_gives_every_test_an_empty_database() {
    let server = PostgresServer::shared();
    let (first, second) = (server.fresh_database(), server.fresh_database());
    assert_ne!(first, second);

    connect(&first).batch_execute("CREATE TABLE kept (id int)").expect("creating a table");
    let mut client = connect(&second);
    let one: i32 = client.query_one("SELECT 1", &[]).expect("select 1").get(0);
    assert_eq!(one, 1);
    let tables = client.query_one("SELECT to_regclass('kept') IS NULL", &[]).expect("looking for a table");
    assert!(tables.get::<_, bool>(0), "a table of the first database shows in the second");
}

#[test]
fn the_default_collation_is_not_byte_order() {
    let mut client = connect(&PostgresServer::shared().fresh_database());
    let row = client.query_one("SELECT 'a' < 'B', 'a' < 'B' COLLATE \"C\"", &[]).expect("comparing letters");
    assert_eq!((row.get(0), row.get(1)), (true, false));
}

#[test]
fn a_database_can_be_made_from_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let url = runtime.block_on(async { PostgresServer::shared().fresh_database() });
    connect(&url);
}

#[test]
fn a_hard_restart_keeps_what_was_committed_and_nothing_else() {
    let server = PostgresServer::start(Options { durable: true });
    let url = server.fresh_database();
    let mut client = connect(&url);
    client.batch_execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)").expect("committing");
    let mut transaction = client.transaction().expect("opening a transaction");
    transaction.execute("INSERT INTO kept VALUES (3)", &[]).expect("inserting without a commit");

    server.restart(Stop::Killed);

    assert!(transaction.commit().is_err(), "the connection outlived the server");
    assert_eq!(row_count(&mut connect(&url)), 2);
    let recovered = fs::read_to_string(server.directory.join("log")).expect("reading the server's log");
    assert!(recovered.contains("was not properly shut down"), "not a crash:\n{recovered}");
}

#[test]
fn dropping_a_server_stops_it_and_removes_its_files() {
    let server = PostgresServer::start(Options::default());
    let (directory, port) = (server.directory.clone(), server.port());
    assert!(directory.exists());
    drop(server);
    assert!(!directory.exists());
    assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}

#[test]
fn a_killed_test_process_leaves_neither_server_nor_files() {
    let note = tempfile::NamedTempFile::new().expect("a file for the victim's note");
    let mut victim = Command::new(std::env::current_exe().expect("the path of this program"))
        .args(["--exact", "postgres::tests::victim", "--ignored"])
        .env(VICTIM, note.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("running the victim");
    let mut written = String::new();
    wait_until("the victim's server", START_LIMIT, || {
        written = fs::read_to_string(note.path()).expect("reading the victim's note");
        written.ends_with('\n')
    });
    let (directory, process) = written.trim_end().split_once('\t').expect("a directory and a process");
    let process = process.parse().expect("a process id");
    assert!(Path::new(directory).exists() && is_running(process));

    victim.kill().expect("killing the victim");
    victim.wait().expect("waiting for the victim");

    wait_until("the victim's server to stop", STOP_LIMIT, || !is_running(process));
    wait_until("the victim's directory to go", STOP_LIMIT, || !Path::new(directory).exists());
}

#[test]
#[ignore = "is started, and killed, by a_killed_test_process_leaves_neither_server_nor_files"]
fn victim() {
    let Some(note) = std::env::var_os(VICTIM) else { return };
    let server = PostgresServer::shared();
    let process = server.processes().postmaster.as_ref().expect("a running server").id();
    fs::write(note, format!("{}\t{process}\n", server.directory.display())).expect("writing the note");
    loop {
        thread::park();
    }
}
