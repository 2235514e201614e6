//! A connection makes new plans when a table has outgrown them.

use rapport_testkit::PostgresServer;

use super::*;
use crate::delivery::LOCK;

const LIMIT: Duration = Duration::from_mins(1);

/// The plan that the connection keeps for a statement it has run.
fn kept_plan(connection: &mut Conn) -> String {
    let mut texts = |sql: &str, values: &[&(dyn ToSql + Sync)]| -> Vec<String> {
        let statement = connection.link.prepare(sql).expect("prepared");
        let rows = connection.link.query(&statement, values).expect("answered");
        rows.iter().map(|row| row.get(0)).collect()
    };
    let named = "SELECT CAST(name AS TEXT) FROM pg_prepared_statements WHERE statement = $1";
    let name = texts(named, &[&LOCK.sql]).pop().expect("prepared");
    texts(&format!("EXPLAIN EXECUTE {name}(NULL, NULL)"), &[]).join("\n")
}

fn run(connection: &mut Conn) -> String {
    connection.begin("BEGIN").expect("begun");
    let found = connection.query_keys(&LOCK, &[Value::Int(1)], &[Value::Bytes(&[0; 16])]).expect("run");
    assert!(found.is_empty(), "this id does not exist");
    let plan = kept_plan(connection);
    connection.control("COMMIT").expect("committed");
    plan
}

#[test]
fn plans_for_an_empty_table_are_made_anew_when_the_table_is_filled() {
    let url = PostgresServer::shared().fresh_database();
    migrate(&url, &mut |_| {}).expect("migrated");
    let mut raw = ::postgres::Client::connect(&url, ::postgres::NoTls).expect("connected");
    // Its ANALYZE would discard the plan as well.
    raw.batch_execute("ALTER TABLE delivery SET (autovacuum_enabled = off)").expect("set");
    let (address, sizes) = (parse(&url).expect("an address"), Arc::default());
    let mut connections = [0, 1].map(|_| Conn::open(&address, &sizes).expect("opened"));
    for connection in &mut connections {
        let plan = run(connection);
        assert!(plan.contains("Filter: (id = ANY ($2))"), "an empty table is read by company only:\n{plan}");
    }

    let filled = raw.batch_execute(
        "INSERT INTO delivery (company, id, webhook, event, kind, state, next_at, attempts, scheduled, created_at) \
         SELECT 1, decode(lpad(to_hex(n), 32, '0'), 'hex'), '\\x01', '\\x01', 'account.created', 1, 0, 1, 1, 0 \
         FROM generate_series(1, 20000) AS n",
    );
    filled.expect("filled");
    // Only one of them looks at the sizes.
    let deadline = Instant::now() + LIMIT;
    for connection in &mut connections {
        loop {
            let plan = run(connection);
            if plan.contains("(id = ANY ($2)))") && !plan.contains("Filter") {
                break;
            }
            assert!(Instant::now() < deadline, "still using the plan for the empty table:\n{plan}");
            thread::sleep(LOOK_EVERY / 10);
        }
    }
}
