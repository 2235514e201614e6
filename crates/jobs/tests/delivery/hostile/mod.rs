//! The table of hostile receivers: each row is one kind, with the expected attempt record and delivery. Every
//! row goes through the real client and sender, on both engines, all at the same time.

mod bodies;
mod codes;
mod heads;
mod kept;
mod table;
mod tls;
mod unread;

use std::time::Duration;

use rapport_domain::delivery::{MAX_EXCERPT_BYTES, State};
use rapport_jobs::Limits;
use rapport_store::delivery::KeptAttempt;
use rapport_testkit::Hostile;

use self::table::{Record, Row, Then};
use crate::harness::{Hook, Options, Sending, eventually, seconds};

/// For receivers that never finish: given up soon, but not before a loaded machine gets to the point.
const BRISK: Limits = Limits { connect: Duration::from_secs(2), total: Duration::from_secs(3) };
/// For receivers that answer or close immediately, however slow the machine is.
const UNHURRIED: Limits = Limits { connect: Duration::from_mins(1), total: Duration::from_mins(1) };
/// How often a receiver that never finishes is tried, until the deadline hits at the intended point.
const ROUNDS: usize = 5;
/// More than all buffers between the two ends, less than an endless response.
const MOST_TAKEN: u64 = 16 << 20;
const LEAST_KINDS: usize = 49;

fn table() -> Vec<Row> {
    [tls::rows(), heads::rows(), bodies::rows(), codes::rows()].into_iter().flatten().collect()
}

#[test]
fn the_table_has_all_kinds_and_each_once() {
    let mut names: Vec<&str> = table().iter().map(|row| row.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two rows share a name");
    assert!(count >= LEAST_KINDS, "only {count} kinds");
}

#[test]
fn receivers_that_answer_badly_at_once() {
    let options = Options { limits: UNHURRIED, ..Options::default() };
    Sending::on_both_with(options, |sending| run(sending, 1, |row| !row.record.is_timeout()));
}

#[test]
fn receivers_that_take_for_ever() {
    let options = Options { limits: BRISK, ..Options::default() };
    Sending::on_both_with(options, |sending| run(sending, ROUNDS, |row| row.record.is_timeout()));
}

/// Sends one event to a webhook for each row, then compares every record. On a machine so slow that a
/// deadline comes before the receiver gets to its point, there is another round.
fn run(sending: &Sending, rounds: usize, chosen: impl Fn(&Row) -> bool) {
    let start = |row: Row| {
        let receiver = row.start();
        let hook = sending.webhook(&receiver.url("/hook"));
        (row, receiver, hook)
    };
    let mut left: Vec<(Row, Hostile, Hook)> =
        table().into_iter().filter(|row| chosen(row)).map(start).collect();
    let mut faults = Vec::new();
    for round in 1..=rounds {
        sending.create_account();
        faults.clear();
        left.retain(|(row, receiver, hook)| {
            let fault = check(sending, row, receiver, hook, round);
            let is_left = fault.is_some();
            faults.extend(fault);
            is_left
        });
        if left.is_empty() {
            return;
        }
    }
    panic!("{} rows:\n{}", faults.len(), faults.join("\n"));
}

fn check(sending: &Sending, row: &Row, receiver: &Hostile, hook: &Hook, round: usize) -> Option<String> {
    // With so many webhooks, most deliveries are written only after the change.
    let delivery = eventually(&format!("{}: delivery {round}", row.name), || {
        let mut deliveries = sending.deliveries(hook);
        if deliveries.len() == round { deliveries.pop() } else { None }
    });
    let attempt = sending.only_attempt(delivery.id);
    let then = then(sending, sending.delivery(delivery.id).state);
    let seen = Record::of(&attempt, then, receiver);
    if !row.allows(&seen) {
        return Some(format!("{}\n  expected {:?}\n  recorded {seen:?}", row.name, row.record));
    }
    if let Some(fault) = fault_of(&attempt, row) {
        return Some(format!("{}: {fault}", row.name));
    }
    if row.must_be_left() {
        eventually(&format!("{}: the connection to be closed", row.name), || {
            (receiver.open() == 0).then_some(())
        });
    }
    let endless = row.is_flood() && !row.record.is_timeout();
    (endless && receiver.bytes_sent() > MOST_TAKEN)
        .then(|| format!("{}: {} bytes were taken", row.name, receiver.bytes_sent()))
}

/// Checks what holds for every attempt, whatever the receiver did.
fn fault_of(attempt: &KeptAttempt, row: &Row) -> Option<String> {
    let limit = if row.record.is_timeout() { BRISK.total * 10 } else { UNHURRIED.total };
    let took = Duration::from_micros(attempt.total_us.unsigned_abs());
    if took > limit {
        return Some(format!("it took {took:?}"));
    }
    let excerpt = attempt.excerpt.as_deref().unwrap_or_default();
    if excerpt.len() > MAX_EXCERPT_BYTES {
        return Some(format!("{} bytes of the response were kept", excerpt.len()));
    }
    match (&attempt.failure, &attempt.error) {
        (Some(_), Some(error)) => why_no_sentence(error).map(|why| format!("{why}: {error}")),
        (Some(failure), None) => Some(format!("{failure} without an error")),
        (None, _) => None,
    }
}

/// Why an error doesn't read as if written for people.
fn why_no_sentence(error: &str) -> Option<&'static str> {
    const LIBRARY_WORDS: [&str; 8] = ["::", "Error", "(os ", "{", "Other(", "rustls", "hyper", "webpki"];
    if LIBRARY_WORDS.iter().any(|word| error.contains(word)) {
        return Some("it quotes a library");
    }
    let words = error.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_type_name = |word: &str| {
        let letters = word.as_bytes();
        word != "KiB"
            && letters.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
    };
    if words.into_iter().any(is_type_name) {
        return Some("it shows a type's name");
    }
    let begins_well =
        error.starts_with(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    if !begins_well || error.ends_with('.') || error.contains(char::is_control) || error.len() > 200 {
        return Some("it isn't in the style of the others");
    }
    (error.split(' ').count() < 4).then_some("too short to be a sentence")
}

#[test]
fn a_librarys_words_are_no_sentence() {
    for error in [
        "TLS: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
        "invalid peer certificate: UnknownIssuer",
        "Connection reset by peer (os error 104)",
        "connection error",
        "the receiver closed the connection.",
    ] {
        assert!(why_no_sentence(error).is_some(), "{error}");
    }
    assert_eq!(why_no_sentence("the receiver closed the connection"), None);
}

fn then(sending: &Sending, state: State) -> Then {
    match state {
        State::Succeeded => Then::Succeeded,
        State::Failed => Then::Failed,
        State::Open { next_at } => match seconds(sending.now(), next_at) {
            wait if (5.0..=5.5).contains(&wait) => Then::Retried,
            #[expect(clippy::cast_possible_truncation, reason = "at most a day")]
            wait => Then::RetriedAfter(wait.round() as i64),
        },
    }
}
