//! The disk as a power cut leaves it, rebuilt from a recording.
//!
//! The model is what a database may rely on, and no more. What was written before a sync began is there once the sync
//! has ended. Of everything else, each sector may or may not have reached the disk, in any order; a sector that was
//! written more than once may hold any of its versions. Names are journalled: of the changes since the directory was
//! last synced, the first few survive, whatever happened to the files themselves. Bytes next to a write are untouched.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::chance::Chance;
use crate::recording::{Files, Record, Recording};

const SECTOR_SIZES: [u64; 2] = [512, 4096];

/// What happens to changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    Lost,
    Kept,
    /// Each sector survives or not, by chance.
    Torn,
}

/// The disk at one moment of a recording.
#[derive(Debug)]
pub struct Replay<'a> {
    recording: &'a Recording,
    dropped_sync: Option<u64>,
    position: usize,
    files: Vec<FileState>,
    /// An inode number is used again once its file is gone.
    file_of_inode: HashMap<u64, usize>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    name_changes: Vec<(usize, NameChange)>,
    /// Where each sync began.
    sync_begins: HashMap<u64, usize>,
}

#[derive(Debug, Default)]
struct FileState {
    durable: Vec<u8>,
    /// Changes since the last sync, with their positions in the recording.
    changes: Vec<(usize, Change)>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, data: Range<usize> },
    Truncate { size: u64 },
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, usize),
    Remove(String),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(name, file) => {
                names.insert(name.clone(), *file);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl<'a> Replay<'a> {
    pub(crate) fn new(recording: &'a Recording, dropped_sync: Option<u64>) -> Self {
        let mut replay = Replay {
            recording,
            dropped_sync,
            position: 0,
            files: Vec::new(),
            file_of_inode: HashMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            sync_begins: HashMap::new(),
        };
        for (name, content) in &recording.before {
            let file = replay.add_file(content.clone());
            replay.names.insert(name.clone(), file);
        }
        replay.durable_names = replay.names.clone();
        replay
    }

    /// Applies everything before this position. Replays only go forward.
    pub fn advance_to(&mut self, place: usize) {
        assert!(self.position <= place && place <= self.recording.len(), "a replay only goes forward");
        while self.position < place {
            self.take(self.position);
            self.position += 1;
        }
    }

    /// The files that a power cut now leaves. The same seed makes the same choices.
    pub fn image(&self, unsynced: Unsynced, seed: u64) -> Files {
        let chance = Chance::new(seed);
        let sector = SECTOR_SIZES[chance.below(SECTOR_SIZES.len())];
        // From a disk that had written back almost nothing to one that had written back almost everything.
        let kept_of_ten = 1 + chance.below(9);
        let keep = || match unsynced {
            Unsynced::Lost => false,
            Unsynced::Kept => true,
            Unsynced::Torn => chance.below(10) < kept_of_ten,
        };
        let surviving_names = match unsynced {
            Unsynced::Lost => 0,
            Unsynced::Kept => self.name_changes.len(),
            Unsynced::Torn => chance.below(self.name_changes.len() + 1),
        };
        let mut names = self.durable_names.clone();
        for (_, change) in &self.name_changes[..surviving_names] {
            change.apply(&mut names);
        }
        let content = |file: &FileState| {
            let mut bytes = file.durable.clone();
            for (_, change) in &file.changes {
                match change {
                    Change::Write { offset, data } => {
                        for (offset, part) in sectors(*offset, &self.recording.log[data.clone()], sector) {
                            if keep() {
                                write_at(&mut bytes, offset, part);
                            }
                        }
                    }
                    Change::Truncate { size } if keep() => truncate(&mut bytes, *size),
                    Change::Truncate { .. } => {}
                }
            }
            bytes
        };
        names.into_iter().map(|(name, file)| (name, content(&self.files[file]))).collect()
    }

    fn add_file(&mut self, durable: Vec<u8>) -> usize {
        self.files.push(FileState { durable, changes: Vec::new() });
        self.files.len() - 1
    }

    fn take(&mut self, at: usize) {
        match &self.recording.records[at] {
            Record::Create { inode, name } => {
                let file = self.add_file(Vec::new());
                self.file_of_inode.insert(*inode, file);
                self.change_name(at, NameChange::Set(name.clone(), file));
            }
            Record::Open { inode, name } => {
                let file = *self.names.get(name).unwrap_or_else(|| panic!("{name} came from nowhere"));
                self.file_of_inode.insert(*inode, file);
            }
            Record::Write { inode, offset, data } => {
                self.change_file(at, *inode, Change::Write { offset: *offset, data: data.clone() });
            }
            Record::Truncate { inode, size } => {
                self.change_file(at, *inode, Change::Truncate { size: *size });
            }
            Record::SyncBegin { number } => {
                self.sync_begins.insert(*number, at);
            }
            Record::SyncEnd { inode, number } => self.sync_file(*inode, *number),
            Record::DirectorySyncEnd { number } => self.sync_names(*number),
            Record::Unlink { name } => self.change_name(at, NameChange::Remove(name.clone())),
            Record::Rename { from, to } => {
                assert!(!from.is_empty(), "a file was moved into the directory: its content is unknown");
                let file = self.names[from];
                self.change_name(at, NameChange::Remove(from.clone()));
                if !to.is_empty() {
                    self.change_name(at, NameChange::Set(to.clone(), file));
                }
            }
            Record::Note { .. } => {}
        }
    }

    fn change_file(&mut self, at: usize, inode: u64, change: Change) {
        // A file without a name, such as a temporary one, is gone after a power cut anyway.
        if let Some(&file) = self.file_of_inode.get(&inode) {
            self.files[file].changes.push((at, change));
        }
    }

    fn change_name(&mut self, at: usize, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push((at, change));
    }

    fn sync_file(&mut self, inode: u64, number: u64) {
        let (Some(begun), Some(&file)) = (self.sync_begins.remove(&number), self.file_of_inode.get(&inode))
        else {
            return;
        };
        if self.dropped_sync == Some(number) {
            return;
        }
        let FileState { durable, changes } = &mut self.files[file];
        let covered = changes.iter().take_while(|(at, _)| *at < begun).count();
        for (_, change) in changes.drain(..covered) {
            match change {
                Change::Write { offset, data } => write_at(durable, offset, &self.recording.log[data]),
                Change::Truncate { size } => truncate(durable, size),
            }
        }
    }

    fn sync_names(&mut self, number: u64) {
        let Some(begun) = self.sync_begins.remove(&number) else { return };
        if self.dropped_sync != Some(number) {
            let covered = self.name_changes.iter().take_while(|(at, _)| *at < begun).count();
            for (_, change) in self.name_changes.drain(..covered) {
                change.apply(&mut self.durable_names);
            }
        }
    }
}

/// The parts of a write that reach the disk independently of each other.
fn sectors(mut offset: u64, mut data: &[u8], sector: u64) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        if data.is_empty() {
            return None;
        }
        let room = usize::try_from(sector - offset % sector).expect("a small sector");
        let (part, rest) = data.split_at(room.min(data.len()));
        let at = offset;
        (offset, data) = (offset + part.len() as u64, rest);
        Some((at, part))
    })
}

fn write_at(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let from = usize::try_from(offset).expect("a file that fits into memory");
    if bytes.len() < from + data.len() {
        bytes.resize(from + data.len(), 0);
    }
    bytes[from..from + data.len()].copy_from_slice(data);
}

fn truncate(bytes: &mut Vec<u8>, size: u64) {
    bytes.resize(usize::try_from(size).expect("a file that fits into memory"), 0);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::recording::MAGIC;

    fn record(kind: u32, inode: u64, offset: u64, data: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC.to_ne_bytes(), kind.to_ne_bytes()].concat();
        for number in [inode, offset, data.len() as u64] {
            bytes.extend_from_slice(&number.to_ne_bytes());
        }
        bytes.extend_from_slice(data);
        bytes
    }

    fn image(recording: &Recording, unsynced: Unsynced, seed: u64) -> Vec<u8> {
        let mut replay = recording.replay(None);
        replay.advance_to(recording.len());
        replay.image(unsynced, seed)["f"].clone()
    }

    #[test]
    fn a_sync_covers_what_was_written_before_it_began() {
        let log = [
            record(2, 7, 0, b"f"),
            record(3, 7, 0, b"a"),
            record(5, 7, 1, b""),
            record(3, 7, 1, b"b"),
            record(6, 7, 1, b""),
        ];
        let recording = Recording::new(Files::from([("f".to_owned(), Vec::new())]), log.concat());
        assert_eq!(image(&recording, Unsynced::Lost, 0), b"a");
        assert_eq!(image(&recording, Unsynced::Kept, 0), b"ab");
    }

    #[test]
    fn unsynced_sectors_survive_one_by_one() {
        let (first, second) = (vec![b'1'; 8192], vec![b'2'; 8192]);
        let log = [record(2, 7, 0, b"f"), record(3, 7, 0, &first), record(3, 7, 0, &second)];
        let recording = Recording::new(Files::from([("f".to_owned(), vec![b'0'; 8192])]), log.concat());
        let images: HashSet<Vec<u8>> = (0..200).map(|seed| image(&recording, Unsynced::Torn, seed)).collect();
        assert!(images.len() > 100, "{} different images", images.len());
        for content in &images {
            assert_eq!(content.len(), 8192);
            assert!(content.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        }
        for byte in b"012" {
            assert!(images.iter().any(|content| content.contains(byte)), "no image holds version {byte}");
        }
        assert_eq!(image(&recording, Unsynced::Torn, 5), image(&recording, Unsynced::Torn, 5));
    }

    #[test]
    fn an_inode_that_is_used_again_is_another_file() {
        let log = [
            record(2, 7, 0, b"f"),
            record(7, 0, 0, b"f"),
            record(1, 7, 0, b"f"),
            record(3, 7, 0, b"new"),
            record(5, 7, 1, b""),
            record(6, 7, 1, b""),
        ];
        let recording = Recording::new(Files::from([("f".to_owned(), b"old".to_vec())]), log.concat());
        assert_eq!(image(&recording, Unsynced::Lost, 0), b"old", "the directory was never synced");
        assert_eq!(image(&recording, Unsynced::Kept, 0), b"new");
    }
}
