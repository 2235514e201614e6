//! The disk under the embedded database fails for a while: syncs fail, or it is full.

use std::thread;
use std::time::Duration;

use rapport_testkit::{Chance, Disk, DiskError};

use crate::kills::life;
use crate::program::Place;
use crate::report::Run;
use crate::scene::Scene;
use crate::size::DISK_FAULTS;
use crate::under_load::under_load;

/// Phases per database.
const PART: usize = 10;
const REFUSES_FOR: Duration = Duration::from_millis(700);

#[test]
fn syncs_fail_for_a_while() {
    phases("failing syncs on SQLite", |disk, error| disk.fail_syncs(error.map(|()| DiskError::Io)));
}

#[test]
fn the_disk_is_full_for_a_while() {
    phases("full disk under SQLite", |disk, error| disk.fail_writes(error.map(|()| DiskError::Full)));
}

fn phases(name: &'static str, fail: fn(&Disk, Option<()>)) {
    let chance = Chance::new(9);
    for phases in DISK_FAULTS.in_parts(PART) {
        let mut run = Run::start(name);
        let scene = Scene::new(Place::sqlite());
        let disk = Disk::watch(scene.place.path());
        let serve = |scene: &Scene| {
            let mut command = scene.command(&scene.place);
            disk.preload(&mut command);
            scene.place.start(&mut command)
        };
        under_load(&mut run, &scene, serve, |run| {
            for _ in 0..phases {
                thread::sleep(life(&chance));
                fail(&disk, Some(()));
                thread::sleep(REFUSES_FOR);
                fail(&disk, None);
                run.faults += 1;
            }
        });
        assert!(disk.failures() > 0, "nothing was refused");
        run.end();
    }
}
