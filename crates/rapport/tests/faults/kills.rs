//! `kill -9` under load, again and again: what was acknowledged is there, exactly once where it carried an `event_id`,
//! nothing is half-applied, and every committed event reaches its receiver.

use std::thread;
use std::time::Duration;

use rapport_testkit::Chance;

use crate::check::{Clients, Unrecorded, verify, verify_arrivals, wait_until_done};
use crate::load::{Load, Written};
use crate::program::Place;
use crate::report::Run;
use crate::scene::Scene;
use crate::size::{KILLS_ON_POSTGRES, KILLS_ON_SQLITE, Size};

/// Kills per database.
const PART: usize = 25;
const SHORTEST_LIFE_MS: usize = 100;
const LONGEST_LIFE_MS: usize = 900;

#[test]
fn nothing_acknowledged_is_lost_on_sqlite() {
    kills("kills on SQLite", &KILLS_ON_SQLITE, Place::sqlite);
}

#[test]
fn nothing_acknowledged_is_lost_on_postgres() {
    kills("kills on PostgreSQL", &KILLS_ON_POSTGRES, Place::postgres);
}

/// How long a service lives before it is killed. Never too short for the clients to get a request through.
pub fn life(chance: &Chance) -> Duration {
    let milliseconds = SHORTEST_LIFE_MS + chance.below(LONGEST_LIFE_MS - SHORTEST_LIFE_MS);
    Duration::from_millis(milliseconds.try_into().unwrap())
}

fn kills(name: &'static str, size: &Size, place: fn() -> Place) {
    let chance = Chance::new(1);
    for kills in size.in_parts(PART) {
        let mut run = Run::start(name);
        kill_repeatedly(&mut run, kills, &chance, Scene::new(place()));
        run.end();
    }
}

fn kill_repeatedly(run: &mut Run, kills: usize, chance: &Chance, scene: Scene) {
    let mut service = scene.serve();
    scene.create_webhook(&service);
    let load = Load::start(&scene.credentials, &[&service.address]);
    let mut unrecorded = Unrecorded::default();
    for _ in 0..kills {
        thread::sleep(life(chance));
        service.signal("KILL");
        service.wait();
        run.faults += 1;
        unrecorded.note(&scene.place);
        service = scene.serve_again_at(&scene.place);
        load.redirect(0, &service.address);
    }
    let written = load.finish();
    assert!(written.iter().all(|written| written.acknowledged() > 0), "the load ran");

    run.open = wait_until_done(&scene.place);
    drop(service);
    run.acknowledged = written.iter().map(Written::acknowledged).sum();
    run.findings = verify(&scene.place, &written, Clients::Ended);
    verify_arrivals(&scene.place, &scene.receiver, &mut run.findings);
    run.needless = unrecorded.needless(&scene.receiver);
}
