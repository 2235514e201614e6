//! The database fails under the service, which keeps running: restarts, read-only phases, terminated sessions,
//! and connections that go silent or are cut after a COMMIT whose outcome nobody hears.

use std::thread;
use std::time::{Duration, Instant};

use rapport_testkit::postgres::{Options, Stop};
use rapport_testkit::{Chance, PostgresProxy, PostgresServer};

use crate::kills::life;
use crate::program::Place;
use crate::report::Run;
use crate::scene::Scene;
use crate::size::{CUTS, READ_ONLY_PHASES, RESTARTS, SILENCES, TERMINATIONS};
use crate::under_load::under_load;

/// Faults per database.
const PART: usize = 25;
const READ_ONLY_FOR: Duration = Duration::from_secs(3);
/// One in this many commits is cut off.
const CUT_EVERY: usize = 7;
const CUTS_WITHIN: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const READ_ONLY: &str = "default_transaction_read_only";

#[test]
fn the_database_restarts() {
    let chance = Chance::new(3);
    let server = durable();
    for restarts in RESTARTS.in_parts(PART) {
        let mut run = Run::start("restarts of PostgreSQL");
        let place = Place::on(server.fresh_database());
        under_load(&mut run, &Scene::new(place), Scene::serve, |run| {
            for n in 0..restarts {
                thread::sleep(life(&chance));
                server.restart([Stop::Fast, Stop::Immediate, Stop::Killed][n % 3]);
                run.faults += 1;
            }
        });
        run.end();
    }
}

#[test]
fn the_database_is_read_only_for_a_while() {
    let chance = Chance::new(4);
    // Its own server, because the setting applies to all of it.
    let server = PostgresServer::start(Options { durable: false });
    for phases in READ_ONLY_PHASES.in_parts(PART) {
        let mut run = Run::start("read-only phases");
        let place = Place::on(server.fresh_database());
        under_load(&mut run, &Scene::new(place), Scene::serve, |run| {
            for _ in 0..phases {
                thread::sleep(life(&chance));
                server.set(READ_ONLY, Some("on"));
                thread::sleep(READ_ONLY_FOR);
                server.set(READ_ONLY, None);
                run.faults += 1;
            }
        });
        run.end();
    }
}

#[test]
fn the_sessions_are_terminated() {
    let chance = Chance::new(5);
    let server = PostgresServer::shared();
    for terminations in TERMINATIONS.in_parts(PART) {
        let mut run = Run::start("terminated sessions");
        let database = server.fresh_database();
        under_load(&mut run, &Scene::new(Place::on(database.clone())), Scene::serve, |run| {
            for _ in 0..terminations {
                thread::sleep(life(&chance));
                server.terminate_sessions(&database);
                run.faults += 1;
            }
        });
        run.end();
    }
}

#[test]
fn connections_are_cut_after_their_commit() {
    cuts("connections cut after COMMIT", |proxy| proxy.cut_after_commit(CUT_EVERY));
}

#[test]
fn connections_are_cut_before_their_commit() {
    cuts("connections cut before COMMIT", |proxy| proxy.cut_before_commit(CUT_EVERY));
}

/// The connections stay open and never answer again; new ones work. What the silent ones have locked stays locked until
/// the server gives up on their transactions.
#[test]
fn connections_go_silent() {
    let chance = Chance::new(8);
    let mut run = Run::start("connections gone silent");
    let proxy = PostgresProxy::start(&PostgresServer::shared().fresh_database());
    under_load(&mut run, &Scene::new(Place::on(proxy.url().to_owned())), Scene::serve, |run| {
        for _ in 0..SILENCES.get() {
            thread::sleep(life(&chance));
            proxy.silence_open();
            run.faults += 1;
        }
    });
    run.end();
}

fn cuts(name: &'static str, fault: fn(&PostgresProxy)) {
    let mut run = Run::start(name);
    let proxy = PostgresProxy::start(&PostgresServer::shared().fresh_database());
    under_load(&mut run, &Scene::new(Place::on(proxy.url().to_owned())), Scene::serve, |run| {
        fault(&proxy);
        let deadline = Instant::now() + CUTS_WITHIN;
        while proxy.cuts() < CUTS.get() {
            assert!(Instant::now() < deadline, "only {} cuts within {CUTS_WITHIN:?}", proxy.cuts());
            thread::sleep(POLL_INTERVAL);
        }
        proxy.heal();
        run.faults = proxy.cuts();
    });
    run.end();
}

fn durable() -> PostgresServer {
    PostgresServer::start(Options { durable: true })
}
