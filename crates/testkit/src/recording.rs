//! A recording of what a program did to the files of a directory: every change and every sync, in order.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::power_cut::Replay;

/// File contents by name.
pub type Files = BTreeMap<String, Vec<u8>>;

pub(crate) const MAGIC: u32 = 0x5041_5252;
const HEAD_BYTES: usize = 32;
/// The kind of a record that a test adds; the others are in `shim/record.c`.
const NOTE: u32 = 100;

/// The endings of names that the library ignores: shared memory, which no recovery relies on, and the program's log.
const IGNORED: [&str; 2] = ["-shm", ".log"];

/// The files of a directory whose changes are recorded.
pub fn files_in(directory: &Path) -> Files {
    let entries = fs::read_dir(directory).expect("listing the watched directory").flatten();
    let plain = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    plain
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(name, _)| !IGNORED.iter().any(|end| name.ends_with(end)))
        .map(|(name, path)| (name, fs::read(path).expect("reading a watched file")))
        .collect()
}

/// The bytes of a note in the log.
pub fn note(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + text.len());
    bytes.extend_from_slice(&MAGIC.to_ne_bytes());
    bytes.extend_from_slice(&NOTE.to_ne_bytes());
    for number in [0, 0, text.len() as u64] {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[derive(Debug)]
pub struct Recording {
    pub(crate) before: Files,
    /// The bytes that the records' ranges refer to.
    pub(crate) log: Vec<u8>,
    pub(crate) records: Vec<Record>,
}

#[derive(Clone, Debug)]
pub(crate) enum Record {
    Create { inode: u64, name: String },
    Open { inode: u64, name: String },
    Write { inode: u64, offset: u64, data: Range<usize> },
    Truncate { inode: u64, size: u64 },
    SyncBegin { number: u64 },
    SyncEnd { inode: u64, number: u64 },
    Unlink { name: String },
    Rename { from: String, to: String },
    DirectorySyncEnd { number: u64 },
    Note { text: String },
}

/// A successful sync of a file.
#[derive(Clone, Copy, Debug)]
pub struct Sync {
    pub number: u64,
    /// Its position in the recording: from here on the file's content is certain.
    pub at: usize,
}

impl Recording {
    /// `before` is what was on disk when the recording began.
    pub fn new(before: Files, log: Vec<u8>) -> Self {
        let mut records = Vec::new();
        let mut at = 0;
        while at < log.len() {
            let number = |from: usize| {
                u64::from_ne_bytes(log[at + from..at + from + 8].try_into().expect("eight bytes"))
            };
            let half = |from: usize| {
                u32::from_ne_bytes(log[at + from..at + from + 4].try_into().expect("four bytes"))
            };
            assert_eq!(half(0), MAGIC, "the recording is damaged at byte {at}");
            let (kind, inode, offset) = (half(4), number(8), number(16));
            let data = at + HEAD_BYTES..at + HEAD_BYTES + usize::try_from(number(24)).expect("a length");
            at = data.end;
            let text = || String::from_utf8_lossy(&log[data.clone()]).into_owned();
            records.push(match kind {
                1 => Record::Create { inode, name: text() },
                2 => Record::Open { inode, name: text() },
                3 => Record::Write { inode, offset, data },
                4 => Record::Truncate { inode, size: offset },
                5 | 9 => Record::SyncBegin { number: offset },
                6 => Record::SyncEnd { inode, number: offset },
                7 => Record::Unlink { name: text() },
                8 => {
                    let both = text();
                    let (from, to) = both.split_once('\0').expect("two names");
                    Record::Rename { from: from.to_owned(), to: to.to_owned() }
                }
                10 => Record::DirectorySyncEnd { number: offset },
                NOTE => Record::Note { text: text() },
                other => panic!("a record of kind {other}"),
            });
        }
        Self { before, log, records }
    }

    /// How many records there are; a power cut comes before one of them, or after the last.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The notes, each with the position after it.
    pub fn notes(&self) -> impl Iterator<Item = (usize, &str)> {
        self.records.iter().enumerate().filter_map(|(at, record)| match record {
            Record::Note { text } => Some((at + 1, text.as_str())),
            _ => None,
        })
    }

    /// All syncs of the file that had this name at the time.
    pub fn syncs_of(&self, wanted: &str) -> Vec<Sync> {
        let mut inode_of = HashMap::new();
        let mut syncs = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            match record {
                Record::Create { inode, name } | Record::Open { inode, name } => {
                    inode_of.insert(name.as_str(), *inode);
                }
                Record::SyncEnd { inode, number } if inode_of.get(wanted) == Some(inode) => {
                    syncs.push(Sync { number: *number, at: at + 1 });
                }
                _ => {}
            }
        }
        syncs
    }

    /// Replays the recording from its beginning, as if one sync, if any, had done nothing.
    pub fn replay(&self, dropped_sync: Option<u64>) -> Replay<'_> {
        Replay::new(self, dropped_sync)
    }
}
