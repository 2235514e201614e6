//! The embedded database's file: why it cannot be used, and that a service notices when it is moved away.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::program::{Place, run, wait_until};

/// Any user but root, for whom no file is read-only.
const NOBODY: u32 = 65_534;
const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

/// Runs another program in the service's environment: one that starts the service, or a copy of it.
fn in_place_of_service(place: &Place, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    for (name, value) in place.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Runs the service as a user who may write to the directory, but not to read-only files.
fn serve_without_privileges(place: &Place) -> Command {
    if fs::metadata(place.path()).unwrap().uid() != 0 {
        return place.command(&SERVE);
    }
    for file in fs::read_dir(place.path()).unwrap() {
        chown(file.unwrap().path(), Some(NOBODY), None).unwrap();
    }
    chown(place.path(), Some(NOBODY), None).unwrap();
    // The program may be in a directory that other users cannot enter.
    let (program, copy) = (env!("CARGO_BIN_EXE_rapport"), place.path().join("rapport"));
    fs::hard_link(program, &copy).or_else(|_| fs::copy(program, &copy).map(|_| ())).unwrap();
    let mut command = in_place_of_service(place, copy, &SERVE);
    command.uid(NOBODY);
    command
}

#[test]
fn a_read_only_database_is_reported_as_such() {
    let place = Place::sqlite();
    assert_eq!(place.run(&["migrate"]).code, Some(0));
    let database = place.path().join("rapport.db");
    fs::set_permissions(&database, Permissions::from_mode(0o444)).unwrap();
    let ended = run(&mut serve_without_privileges(&place));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("rapport.db is read-only"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn a_file_that_cannot_grow_is_reported_as_such() {
    // From less than the schema takes to so much that the start is well under way.
    for blocks in [8, 64, 200] {
        let place = Place::sqlite();
        let script = "trap '' XFSZ; ulimit -f $0; exec \"$@\"";
        let arguments = ["-c", script, &blocks.to_string(), env!("CARGO_BIN_EXE_rapport")];
        let ended = run(in_place_of_service(&place, "sh", &arguments).args(SERVE));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("file size limit"), "{}", ended.stderr);
        assert!(ended.stderr.contains("--database"), "{}", ended.stderr);
    }
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let place = Place::sqlite();
    let disk = place.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let within = |script: &str| {
        let program = env!("CARGO_BIN_EXE_rapport");
        let arguments = ["-rm", "sh", "-c", script, &disk.to_string_lossy(), program];
        run(in_place_of_service(&place, "unshare", &arguments).args(SERVE).env("RAPPORT_DATA_DIR", &disk))
    };
    let mount = "mount -t tmpfs -o size=100k none \"$0\"";
    if within(mount).code != Some(0) {
        // If no disk can be mounted, the store's own test of a full database has to do.
        println!("not run: no small disk can be mounted here");
        return;
    }
    let ended = within(&format!("{mount} && exec \"$@\""));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("the disk is full"), "{}", ended.stderr);
}

#[test]
fn a_service_whose_database_is_moved_away_says_so_and_is_not_ready() {
    let place = Place::sqlite();
    let service = place.serve();
    assert_eq!(service.get("/health/ready").0, 200);
    let (file, aside) = (place.path().join("rapport.db"), place.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    wait_until("the service to be not ready", || service.get("/health/ready").0 == 503);
    assert_eq!(service.get("/health/live").0, 200);
    let log = fs::read_to_string(place.path().join("service.log")).unwrap();
    let told = log.lines().filter(|line| line.contains("storage refuses changes")).collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{log}");
    assert!(told[0].contains("rapport.db was deleted or moved while in use"), "{told:?}");
    fs::rename(&aside, &file).unwrap();
    wait_until("the service to be ready again", || service.get("/health/ready").0 == 200);
}
