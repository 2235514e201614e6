//! Backups under load: each one restores, is consistent, and contains everything that was acknowledged before it began.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::check::{Clients, verify};
use crate::load::{Load, Moment, WRITERS, Written};
use crate::program::{Place, wait_until};
use crate::report::Run;
use crate::scene::Scene;
use crate::size::BACKUPS;

/// Backups per database, so that restoring them stays short.
const PART: usize = 25;

#[test]
fn a_backup_of_sqlite_contains_everything_acknowledged_before_it() {
    backups("backups of SQLite", Place::sqlite);
}

#[test]
fn a_backup_of_postgres_contains_everything_acknowledged_before_it() {
    backups("backups of PostgreSQL", Place::postgres);
}

fn backups(name: &'static str, place: fn() -> Place) {
    for backups in BACKUPS.in_parts(PART) {
        let mut run = Run::start(name);
        back_up_repeatedly(&mut run, backups, &Scene::new(place()));
        run.end();
    }
}

type Acknowledged = Arc<Mutex<BTreeMap<String, Written>>>;

fn back_up_repeatedly(run: &mut Run, backups: usize, scene: &Scene) {
    let service = scene.serve();
    scene.create_webhook(&service);
    let acknowledged = Acknowledged::default();
    let noted = Arc::clone(&acknowledged);
    let listener = Arc::new(move |moment: Moment, written: &Written| {
        if moment == Moment::Acknowledged {
            noted.lock().unwrap().insert(written.imported_id.clone(), written.clone());
        }
    });
    let load = Load::start_heard(&scene.credentials, &[&service.address], WRITERS, listener);
    let now = || acknowledged.lock().unwrap().values().cloned().collect::<Vec<_>>();
    let total = |written: &[Written]| written.iter().map(Written::acknowledged).sum::<usize>();
    wait_until("every client to write", || now().len() == WRITERS);
    for n in 0..backups {
        let before = now();
        let file = scene.place.path().join(format!("{n}.backup"));
        let file = file.to_str().unwrap();
        let made = scene.place.run(&["backup", file]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        wait_until("the load to go on", || total(&now()) > total(&before));
        run.faults += 1;
        // Into the other engine every other time.
        let restored = if n % 2 == 0 { Place::sqlite() } else { Place::postgres() };
        let ended = restored.run(&["restore", file]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        std::fs::remove_file(file).unwrap();
        run.acknowledged += total(&before);
        let found = verify(&restored, &before, Clients::WentOn);
        run.findings.lost += found.lost;
        run.findings
            .problems
            .extend(found.problems.into_iter().map(|problem| format!("backup {n}: {problem}")));
    }
    let surprises = load.finish().into_iter().flat_map(|written| written.surprises);
    run.findings.problems.extend(surprises);
}
