//! What a table contains, in a count and a checksum.
//!
//! The checksum adds up the SHA-256 of every row (its first 128 bits), so the order in which an engine returns
//! rows doesn't matter.

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};

use super::Error;
use super::schema::Table;

/// How many differing tables an error names.
const NAMED: usize = 3;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub rows: u64,
    hash: u128,
}

impl Sum {
    pub fn add(&mut self, row: &[u8]) {
        let hash = digest(&SHA256, row);
        let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
        self.rows += 1;
        self.hash = self.hash.wrapping_add(u128::from_be_bytes(first));
    }
}

/// The count and the checksum of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSum {
    pub table: String,
    pub rows: u64,
    /// 32 hexadecimal digits.
    pub checksum: String,
}

impl TableSum {
    pub(super) fn new(table: &Table, sum: Sum) -> Self {
        let checksum = HEXLOWER.encode(&sum.hash.to_be_bytes());
        Self { table: table.name.clone(), rows: sum.rows, checksum }
    }
}

/// Fails unless both sides contain the same.
pub fn compare(expected: &[TableSum], found: &[TableSum]) -> Result<(), Error> {
    let names = expected.iter().chain(found).map(|sum| sum.table.as_str());
    let names: std::collections::BTreeSet<&str> = names.collect();
    let of = |sums: &[TableSum], name: &str| sums.iter().find(|sum| sum.table == name).cloned();
    let differences = names.into_iter().filter_map(|name| match (of(expected, name), of(found, name)) {
        (Some(expected), Some(found)) if expected == found => None,
        (Some(expected), Some(found)) if expected.rows != found.rows => {
            Some(format!("the table {name} should have {} rows and has {}", expected.rows, found.rows))
        }
        (Some(_), Some(_)) => Some(format!("the checksum of the table {name} is wrong")),
        (Some(_), None) => Some(format!("the table {name} is missing")),
        (None, _) => Some(format!("the table {name} is unknown")),
    });
    let differences: Vec<String> = differences.take(NAMED).collect();
    if differences.is_empty() { Ok(()) } else { Err(Error::Differs(differences.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: &[&[u8]]) -> Sum {
        let mut sum = Sum::default();
        rows.iter().for_each(|row| sum.add(row));
        sum
    }

    #[test]
    fn a_sum_depends_on_every_row_and_not_on_their_order() {
        assert_eq!(sum(&[b"a", b"b"]), sum(&[b"b", b"a"]));
        for other in [&[b"a".as_slice(), b"a"][..], &[b"a"], &[b"a", b"b", b"b"], &[b"ab"]] {
            assert_ne!(sum(&[b"a", b"b"]), sum(other), "{other:?}");
        }
    }

    #[test]
    fn a_difference_names_its_table() {
        let of = |table: &str, rows, checksum: &str| TableSum {
            table: table.to_owned(),
            rows,
            checksum: checksum.to_owned(),
        };
        let one = [of("account", 2, "00"), of("event", 1, "00")];
        assert!(compare(&one, &one).is_ok());
        let table = [
            (vec![of("account", 2, "00")], "event is missing"),
            (vec![of("account", 3, "00"), of("event", 1, "00")], "account should have 2 rows and has 3"),
            (vec![of("account", 2, "00"), of("event", 1, "01")], "checksum of the table event"),
            (vec![of("account", 2, "00"), of("event", 1, "00"), of("x", 0, "00")], "x is unknown"),
        ];
        for (other, expected) in table {
            let message = compare(&one, &other).expect_err("different").to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
