//! Watches and disturbs what a program does to the files of one directory, with a library that is loaded into it
//! (`shim/record.c`): it records every change and every sync in order, and fails or delays them on demand.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::recording::{self, Recording};

const LIBRARY: &str = "record.so";
const SOURCE: &str = include_str!("../shim/record.c");
/// `struct control` of the library: four 32-bit numbers.
const CONTROL_BYTES: usize = 16;
const SYNC_ERROR_AT: u64 = 0;
const WRITE_ERROR_AT: u64 = 4;
const SYNC_DELAY_AT: u64 = 8;
const FAILED_AT: u64 = 12;

/// How the system refuses to write or sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// EIO: the device failed.
    Io,
    /// ENOSPC: the disk is full.
    Full,
}

impl DiskError {
    const fn number(self) -> i32 {
        match self {
            Self::Io => 5,
            Self::Full => 28,
        }
    }
}

/// A watched directory. What it held when the watch began counts as being on disk.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
    before: recording::Files,
    control: File,
    log: File,
    home: TempDir,
}

impl Disk {
    pub fn watch(directory: &Path) -> Self {
        let home = tempfile::tempdir().expect("a directory for the recording");
        compile(&home.path().join(LIBRARY));
        let control_path = home.path().join("control");
        fs::write(&control_path, [0; CONTROL_BYTES]).expect("writing the control file");
        let control = OpenOptions::new().read(true).write(true).open(control_path).expect("the control file");
        let log =
            OpenOptions::new().create(true).append(true).open(home.path().join("log")).expect("the log");
        // The library compares paths as the system resolves them.
        let directory = directory.canonicalize().expect("the watched directory");
        Self { before: recording::files_in(&directory), directory, control, log, home }
    }

    /// Makes the program run with the library in it.
    pub fn preload(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", self.home.path().join(LIBRARY))
            .env("SHIM_DIRECTORY", &self.directory)
            .env("SHIM_LOG", self.home.path().join("log"))
            .env("SHIM_CONTROL", self.home.path().join("control"));
    }

    /// Makes every sync fail from now on; `None` ends that.
    pub fn fail_syncs(&self, error: Option<DiskError>) {
        self.set(SYNC_ERROR_AT, error.map_or(0, DiskError::number));
    }

    /// Makes every write and truncation fail from now on; `None` ends that.
    pub fn fail_writes(&self, error: Option<DiskError>) {
        self.set(WRITE_ERROR_AT, error.map_or(0, DiskError::number));
    }

    /// Makes every sync take this much longer, to the millisecond.
    pub fn delay_syncs(&self, by: Duration) {
        self.set(SYNC_DELAY_AT, i32::try_from(by.as_millis()).expect("a delay of less than a month"));
    }

    /// How many calls have failed on demand so far.
    pub fn failures(&self) -> i32 {
        let mut bytes = [0; 4];
        self.control.read_exact_at(&mut bytes, FAILED_AT).expect("reading the control file");
        i32::from_ne_bytes(bytes)
    }

    /// Adds a note to the recording, after everything the program did until now.
    pub fn note(&self, text: &str) {
        (&self.log).write_all(&recording::note(text)).expect("adding to the recording");
    }

    /// What has been recorded so far. The program should have ended.
    pub fn recording(&self) -> Recording {
        let log = fs::read(self.home.path().join("log")).expect("reading the recording");
        Recording::new(self.before.clone(), log)
    }

    /// The program has these bytes mapped, so it sees the change immediately.
    fn set(&self, at: u64, value: i32) {
        self.control.write_all_at(&value.to_ne_bytes(), at).expect("writing the control file");
    }
}

/// Compiles the library. The embedded database needs a C compiler anyway.
fn compile(library: &Path) {
    let source = library.with_extension("c");
    fs::write(&source, SOURCE).expect("writing the library's source");
    let output = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .args([library, &source])
        .arg("-ldl")
        .output()
        .expect("running cc");
    assert!(output.status.success(), "cc failed:\n{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_cut::Unsynced;

    fn shell(disk: &Disk, script: &str) -> bool {
        let mut command = Command::new("sh");
        disk.preload(&mut command);
        command.current_dir(&disk.directory).args(["-c", script]);
        command.output().expect("running sh").status.success()
    }

    /// The files after a power cut at this position of the recording.
    fn after_cut(recording: &Recording, cut: usize, unsynced: Unsynced) -> Vec<(String, String)> {
        let mut replay = recording.replay(None);
        replay.advance_to(cut);
        let image = replay.image(unsynced, 1);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        image.iter().map(|(name, content)| (name.clone(), text(content))).collect()
    }

    fn files(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
    }

    #[test]
    fn only_what_was_synced_survives_for_certain() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("old"), "was there").expect("written");
        let disk = Disk::watch(directory.path());
        assert!(shell(&disk, "printf one > new; sync new"));
        disk.note("synced");
        assert!(shell(&disk, "sync .; printf two >> new; printf XX 1<> old"));
        disk.note("written");
        assert!(shell(&disk, "rm old; mv new newer"));

        let recording = disk.recording();
        let [synced, written] = ["synced", "written"].map(|text| {
            recording.notes().find(|(_, note)| *note == text).expect("the note is in the recording").0
        });
        let old = ("old", "was there");
        assert_eq!(after_cut(&recording, 0, Unsynced::Kept), files(&[old]));
        // The file's content is on disk, but the directory does not know the file yet.
        assert_eq!(after_cut(&recording, synced, Unsynced::Lost), files(&[old]));
        assert_eq!(after_cut(&recording, synced, Unsynced::Kept), files(&[("new", "one"), old]));
        assert_eq!(after_cut(&recording, written, Unsynced::Lost), files(&[("new", "one"), old]));
        let kept = files(&[("new", "onetwo"), ("old", "XXs there")]);
        assert_eq!(after_cut(&recording, written, Unsynced::Kept), kept);
        let end = recording.len();
        assert_eq!(after_cut(&recording, end, Unsynced::Kept), files(&[("newer", "onetwo")]));
        assert_eq!(after_cut(&recording, end, Unsynced::Lost), files(&[("new", "one"), old]));
    }

    #[test]
    fn a_dropped_sync_leaves_its_writes_uncertain() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("file"), "").expect("written");
        let disk = Disk::watch(directory.path());
        assert!(shell(&disk, "printf one > file; sync file"));
        let recording = disk.recording();
        let [sync] = recording.syncs_of("file")[..] else { panic!("one sync of the file") };
        let content = |dropped| {
            let mut replay = recording.replay(dropped);
            replay.advance_to(recording.len());
            replay.image(Unsynced::Lost, 1)["file"].clone()
        };
        assert_eq!(content(None), b"one");
        assert_eq!(content(Some(sync.number)), b"");
    }

    #[test]
    fn writes_and_syncs_fail_on_demand() {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = Disk::watch(directory.path());
        assert!(shell(&disk, "printf one > file; sync file"));
        disk.fail_syncs(Some(DiskError::Io));
        assert!(!shell(&disk, "sync file"), "a sync succeeded");
        disk.fail_syncs(None);
        disk.fail_writes(Some(DiskError::Full));
        assert!(!shell(&disk, "printf two >> file"), "a write succeeded");
        assert!(disk.failures() >= 2);
        disk.fail_writes(None);
        assert!(shell(&disk, "printf three >> file; sync file"));
        assert_eq!(fs::read(directory.path().join("file")).expect("read"), b"onethree");
    }
}
