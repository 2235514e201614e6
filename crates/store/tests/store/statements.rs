//! Both engines understand every statement, and bind its values correctly.

use std::collections::BTreeSet;

use rapport_store::{Database, Scope, Statement, Value, all_statements, migrate_only};

use crate::support::{Random, for_each_database, raw};

#[test]
fn every_statement_prepares_on_both_engines() {
    for_each_database(|database| {
        migrate_only(&database).expect("migrated");
        assert!(all_statements().len() > 50, "the list has lost statements");
        match database {
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("opened");
                for statement in all_statements() {
                    let prepared = connection.prepare(statement.sqlite());
                    let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error}", statement.name));
                    assert_eq!(
                        prepared.parameter_count(),
                        parameters(statement.sql).len(),
                        "{}",
                        statement.name
                    );
                }
            }
            Database::Postgres(url) => {
                let mut client = raw(&url);
                for statement in all_statements() {
                    let prepared = client.prepare(statement.sql);
                    let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error:?}", statement.name));
                    assert_eq!(
                        prepared.params().len(),
                        parameters(statement.sql).len(),
                        "{}",
                        statement.name
                    );
                }
            }
        }
    });
}

#[test]
fn every_statement_has_its_own_name() {
    let statements = all_statements();
    let names: BTreeSet<&str> = statements.iter().map(|statement| statement.name).collect();
    assert_eq!(names.len(), statements.len());
}

#[test]
fn a_companys_statement_is_bound_to_its_company() {
    for statement in all_statements() {
        if statement.scope != Scope::Company {
            continue;
        }
        let sql = statement.sql;
        let of_company_table = ["FROM company ", "UPDATE company "].iter().any(|part| sql.contains(part));
        let bound = sql.contains("company = $1")
            || (sql.starts_with("INSERT INTO ")
                && sql.contains(" (company, ")
                && sql.contains("VALUES ($1, "))
            || (of_company_table && sql.contains("id = $1"));
        assert!(bound, "{} does not bind the company: {sql}", statement.name);
    }
}

/// The parameter numbers of a text, which must begin at 1 without gaps.
fn parameters(sql: &str) -> BTreeSet<usize> {
    let numbers: BTreeSet<usize> = sql
        .split('$')
        .skip(1)
        .map(|rest| {
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
        })
        .collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len()), "{sql}");
    numbers
}

#[test]
fn permuted_and_repeated_parameters_bind_the_same_on_both_engines() {
    let texts: Vec<String> = (1..=12).map(|number| format!("value {number}")).collect();
    let values: Vec<Value> = texts.iter().map(Value::from).collect();
    for_each_database(|database| {
        let mut random = Random::seeded(7);
        for _ in 0..20 {
            // Some numbers twice or more, then all of them, so that none is missing.
            let mut order: Vec<usize> = (0..20).map(|_| 1 + random.below(12)).collect();
            order.extend((1..=12).rev());
            let columns: Vec<String> =
                order.iter().map(|number| format!("CAST(${number} AS TEXT)")).collect();
            let sql = Box::leak(format!("SELECT {}", columns.join(", ")).into_boxed_str());
            let statement = Statement::reference("test", sql);
            let expected: Vec<String> = order.iter().map(|number| format!("value {number}")).collect();
            assert_eq!(run(&database, &statement, &values), expected, "{sql}");
        }
    });
}

fn run(database: &Database, statement: &Statement, values: &[Value]) -> Vec<String> {
    match database {
        Database::Sqlite(_) => {
            let connection = rusqlite::Connection::open_in_memory().expect("opened");
            let mut prepared = connection.prepare(statement.sqlite()).expect("prepared");
            let width = prepared.column_count();
            let values = rusqlite::params_from_iter(values);
            let row = prepared.query_row(values, |row| (0..width).map(|n| row.get(n)).collect());
            row.expect("a row")
        }
        Database::Postgres(url) => {
            let mut client = raw(url);
            let values: Vec<&(dyn postgres::types::ToSql + Sync)> =
                values.iter().map(|value| value as &(dyn postgres::types::ToSql + Sync)).collect();
            let row = client.query_one(statement.sql, &values).expect("a row");
            (0..row.len()).map(|n| row.get(n)).collect()
        }
    }
}
