//! The power is cut: the disk is rebuilt from a recording of what the service wrote and synced, at many moments and in
//! many ways, and the database must hold everything that was acknowledged by then.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rapport_testkit::{Chance, Disk, Recording, Unsynced, raw};

use crate::check::{Clients, Findings, verify};
use crate::load::{Load, Moment, WRITERS, Written};
use crate::program::Place;
use crate::report::Run;
use crate::scene::Scene;
use crate::size::POWER_CUTS;

/// Images per recording.
const PART: usize = 250;
/// Requests acknowledged in each of the two lives of a recorded service.
const SHORT_LIVES: [usize; 2] = [60, 40];
const LONG_LIVES: [usize; 2] = [1000, 600];
const CONTROL_LIVES: [usize; 2] = [20, 10];
/// The pause between the requests of a single client: mostly, what one request caused is done before the next.
const CONTROL_PAUSE: Duration = Duration::from_millis(50);
const RECORDED_WITHIN: Duration = Duration::from_mins(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const LOG: &str = "rapport.db-wal";
/// Syncs that are dropped, one at a time, to check that the loss is noticed.
const CONTROLS: usize = 3;

#[test]
fn a_power_cut_loses_nothing_acknowledged() {
    let chance = Chance::new(7);
    for images in POWER_CUTS.in_parts(PART) {
        let mut run = Run::start("power cuts on SQLite");
        let recording = record(if images < PART { SHORT_LIVES } else { LONG_LIVES }, WRITERS, Duration::ZERO);
        let mut cuts: Vec<usize> = (0..images).map(|_| moment(&recording, &chance)).collect();
        cuts.sort_unstable();
        let mut replay = recording.replay(None);
        for cut in cuts {
            replay.advance_to(cut);
            let unsynced = [Unsynced::Lost, Unsynced::Kept, Unsynced::Torn, Unsynced::Torn][chance.below(4)];
            let seed = u64::try_from(chance.below(usize::MAX)).unwrap();
            let acknowledged = acknowledged_before(&recording, cut);
            let found = examine(&replay.image(unsynced, seed), &acknowledged);
            run.faults += 1;
            run.findings.lost += found.lost;
            let problems = found.problems.into_iter();
            run.findings
                .problems
                .extend(problems.map(|problem| format!("{cut} {unsynced:?} {seed}: {problem}")));
        }
        run.acknowledged =
            acknowledged_before(&recording, recording.len()).iter().map(Written::acknowledged).sum();
        run.end();
    }
}

/// The control: without the one sync of the log that an acknowledgement relied on, the check must find a loss.
#[test]
fn a_dropped_sync_is_noticed_as_a_loss() {
    let recording = record(CONTROL_LIVES, 1, CONTROL_PAUSE);
    let relied_on = syncs_relied_on(&recording);
    assert!(relied_on.len() >= CONTROLS, "{} acknowledgements relied on one sync alone", relied_on.len());
    for (sync, cut) in relied_on.iter().step_by(relied_on.len() / CONTROLS).take(CONTROLS) {
        let examine_without = |dropped| {
            let mut replay = recording.replay(dropped);
            replay.advance_to(*cut);
            examine(&replay.image(Unsynced::Lost, 0), &acknowledged_before(&recording, *cut))
        };
        let sound = examine_without(None);
        assert!(sound.problems.is_empty(), "with all syncs: {:?}", sound.problems);
        let found = examine_without(Some(*sync));
        assert!(found.lost > 0, "sync {sync} was dropped, and nothing lost was found: {:?}", found.problems);
    }
    println!(
        "control: {CONTROLS} of {} syncs were dropped, one at a time, and found as losses",
        relied_on.len()
    );
}

/// The syncs of the log that were the only one while a request was in progress, and the moments of acknowledgement.
fn syncs_relied_on(recording: &Recording) -> Vec<(u64, usize)> {
    let syncs = recording.syncs_of(LOG);
    let mut begun = HashMap::new();
    let mut relied_on = Vec::new();
    for (at, text) in recording.notes() {
        let note = Note::read(text);
        if note.moment == Moment::BeforeRequest {
            begun.insert(note.imported_id, at);
        } else if let Some(begun) = begun.remove(&note.imported_id) {
            let mut during = syncs.iter().filter(|sync| (begun..at).contains(&sync.at));
            if let (Some(sync), None) = (during.next(), during.next()) {
                relied_on.push((sync.number, at));
            }
        }
    }
    relied_on
}

/// Runs the service under load, and records what it does to its data directory and what it acknowledges: in two lives
/// of so many requests each, so that a stop and the next start are recorded too.
fn record(lives: [usize; 2], clients: usize, pause: Duration) -> Recording {
    let scene = Scene::new(Place::sqlite());
    scene.create_webhook(&scene.serve());
    let disk = Arc::new(Disk::watch(scene.place.path()));
    let serve = || {
        let mut command = scene.command(&scene.place);
        disk.preload(&mut command);
        scene.place.start(&mut command)
    };
    let mut service = serve();
    let (heard, acknowledged) = (Arc::clone(&disk), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&acknowledged);
    let listener = move |moment, written: &Written| {
        heard.note(&Note::of(moment, written).to_string());
        if moment == Moment::Acknowledged {
            counted.fetch_add(1, Ordering::Relaxed);
            thread::sleep(pause);
        }
    };
    let load = Load::start_heard(&scene.credentials, &[&service.address], clients, Arc::new(listener));
    let wait_for = |requests| {
        let deadline = Instant::now() + RECORDED_WITHIN;
        while acknowledged.load(Ordering::Relaxed) < requests {
            assert!(Instant::now() < deadline, "fewer than {requests} requests within {RECORDED_WITHIN:?}");
            thread::sleep(POLL_INTERVAL);
        }
    };
    wait_for(lives[0]);
    // Not killed: a kill between a change and its record would leave a hole in the recording.
    service.signal("TERM");
    service.wait();
    service = serve();
    load.redirect(0, &service.address);
    wait_for(lives[0] + lives[1]);
    let written = load.finish();
    service.signal("TERM");
    service.wait();
    let recording = disk.recording();
    assert_eq!(acknowledged_before(&recording, recording.len())[..clients], written);
    recording
}

/// A client's note in the recording.
struct Note {
    moment: Moment,
    imported_id: String,
    upserts: usize,
    events: i64,
}

impl Note {
    fn of(moment: Moment, written: &Written) -> Self {
        let Written { imported_id, upserts, events, .. } = written.clone();
        Self { moment, imported_id, upserts, events }
    }

    fn read(text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let [moment, imported_id, upserts, events] = words[..] else { panic!("not a note: {text}") };
        let moment = if moment == "sends" { Moment::BeforeRequest } else { Moment::Acknowledged };
        let (upserts, events) = (upserts.parse().unwrap(), events.parse().unwrap());
        Self { moment, imported_id: imported_id.to_owned(), upserts, events }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.moment == Moment::BeforeRequest { "sends" } else { "has" };
        write!(f, "{word} {} {} {}", self.imported_id, self.upserts, self.events)
    }
}

fn acknowledged_before(recording: &Recording, cut: usize) -> Vec<Written> {
    let names = (0..WRITERS).map(|n| format!("crm-{n}"));
    let mut clients: BTreeMap<String, Written> =
        names.map(|name| (name.clone(), Written { imported_id: name, ..Written::default() })).collect();
    for (_, text) in recording.notes().take_while(|(at, _)| *at <= cut) {
        let Note { imported_id, upserts, events, .. } = Note::read(text);
        let written = clients.get_mut(&imported_id).unwrap();
        (written.upserts, written.events) = (upserts, events);
    }
    clients.into_values().collect()
}

/// A moment for the power to fail. Half of them are around a sync of the log, where the most can go wrong.
fn moment(recording: &Recording, chance: &Chance) -> usize {
    if chance.below(2) == 0 {
        return chance.below(recording.len() + 1);
    }
    let syncs = recording.syncs_of(LOG);
    let at = syncs[chance.below(syncs.len())].at;
    (at + chance.below(7)).saturating_sub(3).min(recording.len())
}

/// Opens a disk image as the service does, and compares it with what was acknowledged.
fn examine(image: &BTreeMap<String, Vec<u8>>, acknowledged: &[Written]) -> Findings {
    let place = Place::in_memory();
    for (name, content) in image {
        std::fs::write(place.path().join(name), content).unwrap();
    }
    let doctor = place.run(&["doctor", "--listen", "127.0.0.1:0"]);
    let mut findings = Findings::default();
    if doctor.code == Some(0) {
        findings = verify(&place, acknowledged, Clients::CutOff);
    } else {
        let requests = acknowledged.iter().map(Written::acknowledged).sum();
        findings.lose(requests, format!("doctor: {}{}", doctor.stdout, doctor.stderr));
    }
    let damage = raw::try_ask(&place.database(), "PRAGMA integrity_check(1)");
    findings.expect(damage.as_deref() == Ok("ok"), || format!("integrity_check: {damage:?}"));
    findings
}
