//! The latest scheduled backup of this process, for the System page and the metrics.

use parking_lot::Mutex;
use rapport_domain::time::Time;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastBackup {
    pub made_at: Time,
    pub bytes: u64,
    /// The file's name.
    pub file: String,
}

/// The state of scheduled backups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backups {
    pub is_scheduled: bool,
    pub last: Option<LastBackup>,
}

#[derive(Default)]
pub struct BackupReport(Mutex<Backups>);

impl BackupReport {
    /// Backups are scheduled; the last one is what an earlier process left, if it left any.
    pub fn scheduled(&self, last: Option<LastBackup>) {
        *self.0.lock() = Backups { is_scheduled: true, last };
    }

    pub fn get(&self) -> Backups {
        self.0.lock().clone()
    }
}
