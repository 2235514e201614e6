//! What a server finds on this machine: its programs, a place for its files, and a user to run as.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const MEMORY: &str = "/dev/shm";
/// In kilobytes: far more than the tests with the most databases need.
const ENOUGH_MEMORY: u64 = 8 << 20;
/// The first version with ICU collations for a whole database.
const OLDEST_MAJOR_VERSION: u32 = 15;
const INSTALL_HINT: &str = "install the PostgreSQL server, version 15 or newer (Debian package `postgresql`), or run ./scripts/test, \
     which does";

/// Where a server may forget everything: in memory if there is room, because each test has hundreds of files there.
pub fn fastest_directory() -> PathBuf {
    let free = Command::new("df").args(["--output=avail", MEMORY]).output().ok().and_then(|output| {
        String::from_utf8_lossy(&output.stdout).lines().last()?.trim().parse::<u64>().ok()
    });
    if free.is_some_and(|kilobytes| kilobytes >= ENOUGH_MEMORY) {
        MEMORY.into()
    } else {
        std::env::temp_dir()
    }
}

/// The newest installed version's programs, or those on the PATH.
pub fn find_bin_dir() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().filter_map(|entry| {
        let major_version: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((major_version, entry.path().join("bin")))
    });
    let newest = installed.filter(|(_, bin_dir)| has_server(bin_dir)).max();
    if let Some((major_version, bin_dir)) = newest {
        assert!(
            major_version >= OLDEST_MAJOR_VERSION,
            "the tests found only PostgreSQL {major_version}: {INSTALL_HINT}"
        );
        return bin_dir;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find(|bin_dir| has_server(bin_dir))
        .unwrap_or_else(|| panic!("the tests need a PostgreSQL server and found none: {INSTALL_HINT}"))
}

fn has_server(bin_dir: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| bin_dir.join(program).is_file())
}

/// The user and group to run the server as, if this process, which created the directory, is root.
pub fn unprivileged_user(directory: &Path) -> Option<(u32, u32)> {
    let ourselves = fs::metadata(directory).expect("looking at the cluster directory").uid();
    if ourselves != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("reading the users of this machine");
    let find = |wanted: &str| {
        users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, user, group, ..] = fields[..] else { return None };
            (name == wanted).then_some(())?;
            Some((user.parse().ok()?, group.parse().ok()?))
        })
    };
    let user = find("postgres").or_else(|| find("nobody"));
    assert!(
        user.is_some(),
        "PostgreSQL does not run as root and there is no user `postgres`: {INSTALL_HINT}"
    );
    user
}
