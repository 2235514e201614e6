//! PostgreSQL's plans for every statement, on filled tables: without statistics, with fresh ones, and with
//! ones from when the tables were almost empty. Each must find its rows by an index that its keys are bound
//! to.

mod catalogue;
mod exceptions;
mod fill;
mod verdict;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use postgres::{Client, NoTls, SimpleQueryMessage};
use rapport_testkit::PostgresServer;

use crate::engine::postgres::SESSION;
use crate::{Database, migrate_only};
use catalogue::{Planned, all_bulk, everything};
pub(crate) use fill::{Few, few, forget_statistics, keep_statistics};
use verdict::Schema;

/// Explains a statement as a connection of the store would run it.
fn explain(client: &mut Client, text: &str, parameters: usize) -> serde_json::Value {
    client
        .batch_execute(&format!("PREPARE planned AS {text}"))
        .unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let values = vec!["NULL"; parameters].join(", ");
    let call = if parameters == 0 { String::new() } else { format!("({values})") };
    let rows =
        client.simple_query(&format!("EXPLAIN (FORMAT JSON) EXECUTE planned{call}")).expect("explained");
    client.batch_execute("DEALLOCATE planned").expect("deallocated");
    let json = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plans: serde_json::Value = serde_json::from_str(json.expect("a plan")).expect("JSON");
    plans[0]["Plan"].clone()
}

/// Plans everything; adds problems to `faults` and the exceptions that were needed to `used`.
fn judge(client: &mut Client, state: &str, faults: &mut Vec<String>, used: &mut BTreeSet<&'static str>) {
    client.batch_execute(SESSION).expect("set");
    let schema = Schema::read(client);
    for Planned { name, text, parameters } in everything() {
        let plan = explain(client, &text, parameters);
        for fault in schema.faults(&plan) {
            match exceptions::of(&name, &fault.relation) {
                Some(exception) => {
                    used.insert(exception);
                }
                None => faults.push(format!("{state}: {name}: {fault}\n    {text}")),
            }
        }
    }
    client.batch_execute("RESET ALL").expect("reset");
}

fn empty_database() -> Client {
    let url = PostgresServer::shared().fresh_database();
    migrate_only(&Database::Postgres(url.clone())).expect("migrated");
    let mut client = Client::connect(&url, NoTls).expect("connected");
    keep_statistics(&mut client);
    client
}

#[test]
fn every_statement_is_bound_to_its_keys_whatever_the_statistics_say() {
    let (mut faults, mut used) = (Vec::new(), BTreeSet::new());
    let mut client = empty_database();
    few(&mut client, Few::One);
    client.batch_execute("ANALYZE").expect("analyzed");
    fill::many(&mut client);
    judge(&mut client, "analyzed with one row", &mut faults, &mut used);

    let mut client = empty_database();
    few(&mut client, Few::Alike);
    client.batch_execute("ANALYZE").expect("analyzed");
    fill::many(&mut client);
    judge(&mut client, "analyzed with ten similar rows", &mut faults, &mut used);
    forget_statistics(&mut client);
    judge(&mut client, "never analyzed", &mut faults, &mut used);
    client.batch_execute("ANALYZE").expect("analyzed");
    judge(&mut client, "analyzed", &mut faults, &mut used);

    assert!(faults.is_empty(), "{} plans are wrong:\n{}", faults.len(), faults.join("\n"));
    let unused: Vec<&str> = exceptions::names().filter(|name| !used.contains(name)).collect();
    assert!(unused.is_empty(), "exceptions that nothing needs: {unused:?}");
}

#[test]
fn every_bulk_statement_is_planned() {
    fn count(directory: &Path) -> usize {
        let entries = fs::read_dir(directory).expect("the sources").flatten();
        let counted = entries.map(|entry| {
            if entry.path().is_dir() {
                return count(&entry.path());
            }
            let text = fs::read_to_string(entry.path()).expect("a source");
            let is_bulk = |line: &&str| {
                line.starts_with("pub(crate) static ")
                    && ["InsertMany", "UpdateMany", "DeleteMany"]
                        .iter()
                        .any(|kind| line.contains(&format!(": {kind}")))
            };
            text.lines().filter(is_bulk).count()
        });
        counted.sum()
    }
    let declared = count(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert_eq!(all_bulk().len(), declared, "catalogue.rs must list all of them");
}
