//! Several nodes on one PostgreSQL database: the others take over the work of a killed node.

use std::thread;
use std::time::Duration;

use rapport_testkit::{Behaviour, Chance};

use crate::check::{
    Clients, Unrecorded, events_with_open_deliveries, verify, verify_arrivals, wait_until_done,
};
use crate::kills::life;
use crate::load::{Load, Written};
use crate::program::Place;
use crate::report::Run;
use crate::scene::Scene;
use crate::size::KILLS_OF_NODES;

const NODES: usize = 3;
/// Kills per database.
const PART: usize = 30;
/// How long requests take, so that some are in progress when a node is killed.
const SLOW: Duration = Duration::from_millis(700);

#[test]
fn the_other_node_takes_over_the_work_of_a_killed_one() {
    let mut run = Run::start("a node killed beside another");
    let scene = Scene::new(Place::postgres());
    let mut doomed = scene.serve();
    let beside = scene.place.beside();
    let other = scene.serve_at(&beside);
    scene.create_webhook(&doomed);
    let load = Load::start(&scene.credentials, &[&doomed.address, &other.address]);
    thread::sleep(SLOW);
    // Some of its requests are in progress when it dies.
    scene.receiver.answer(Behaviour::Delay(SLOW, Box::new(Behaviour::Status(200))));
    thread::sleep(SLOW);
    doomed.signal("KILL");
    doomed.wait();
    run.faults = 1;
    scene.receiver.answer(Behaviour::Status(200));
    let mut unrecorded = Unrecorded::default();
    unrecorded.note(&scene.place);
    load.redirect(0, &other.address);
    let written = load.finish();
    let left = events_with_open_deliveries(&scene.place).len();
    assert!(left > 0, "the killed node left nothing to take over");

    run.open = wait_until_done(&scene.place);
    drop(other);
    run.acknowledged = written.iter().map(Written::acknowledged).sum();
    run.findings = verify(&scene.place, &written, Clients::Ended);
    verify_arrivals(&scene.place, &scene.receiver, &mut run.findings);
    run.needless = unrecorded.needless(&scene.receiver);
    run.end();
}

#[test]
fn three_nodes_that_are_killed_at_random_lose_nothing() {
    let chance = Chance::new(2);
    for kills in KILLS_OF_NODES.in_parts(PART) {
        let mut run = Run::start("kills among three nodes");
        kill_nodes(&mut run, kills, &chance);
        run.end();
    }
}

fn kill_nodes(run: &mut Run, kills: usize, chance: &Chance) {
    let scene = Scene::new(Place::postgres());
    let beside: Vec<Place> = (1..NODES).map(|_| scene.place.beside()).collect();
    let places: Vec<&Place> = std::iter::once(&scene.place).chain(&beside).collect();
    let mut nodes: Vec<_> = places.iter().map(|place| scene.serve_at(place)).collect();
    scene.create_webhook(&nodes[0]);
    let addresses: Vec<&str> = nodes.iter().map(|node| node.address.as_str()).collect();
    let load = Load::start(&scene.credentials, &addresses);
    let mut unrecorded = Unrecorded::default();
    for _ in 0..kills {
        thread::sleep(life(chance));
        let victim = chance.below(NODES);
        nodes[victim].signal("KILL");
        nodes[victim].wait();
        run.faults += 1;
        unrecorded.note(&scene.place);
        // The others run alone for a while.
        thread::sleep(life(chance) / 2);
        nodes[victim] = scene.serve_again_at(places[victim]);
        load.redirect(victim, &nodes[victim].address);
    }
    let written = load.finish();
    assert!(written.iter().all(|written| written.acknowledged() > 0), "the load ran");

    run.open = wait_until_done(&scene.place);
    drop(nodes);
    run.acknowledged = written.iter().map(Written::acknowledged).sum();
    run.findings = verify(&scene.place, &written, Clients::Ended);
    verify_arrivals(&scene.place, &scene.receiver, &mut run.findings);
    run.needless = unrecorded.needless(&scene.receiver);
}
