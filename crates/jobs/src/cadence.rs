//! The reminder sweep: visits every company in turn, woken by time and by changes. Its state is in the
//! database, so several nodes may sweep at once.

use std::time::{Duration, Instant};

use rapport_app::cadence::{Stepped, end_snoozes, step};
use rapport_app::job_report::Job;
use rapport_app::{App, Error, log_failure, metric};
use rapport_domain::cadence::{begun_everywhere, next_due};
use rapport_domain::id::CompanyId;
use rapport_domain::time::Time;
use rapport_store::cadence::{Outlook, outlook};
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// The longest time between two checks, unless a test sets another. A change made by another node, which this
/// one isn't told of, is found within that time.
pub const EVERY: Duration = Duration::from_secs(20);
/// Changes come in bursts: the shortest time between two checks.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// Steps of one company before the next company's turn.
const TURN: usize = 20;
/// The shortest and longest pause after a step, which leave storage to others.
const LEAST_BREATH: Duration = Duration::from_millis(1);
const MOST_BREATH: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let least = LEAST_PAUSE.min(every);
    let mut rounds = Rounds::of(Job::Cadence, &app, &stop).woken_by(app.services().cadence_changes(), least);
    while rounds.begin() {
        let ended = round(&app, &stop).await;
        let next = ended.as_ref().ok().copied().flatten();
        let pause = next.map_or(every, |next| until(next, app.now()).clamp(least, every));
        rounds.pause(ended, pause).await;
    }
}

fn until(next: Time, now: Time) -> Duration {
    Duration::from_micros(u64::try_from(next.micros_since(now)).unwrap_or(0))
}

/// Gives every company with due clients its turn; returns when to check again, if known.
pub async fn round(app: &App, stop: &CancellationToken) -> Result<Option<Time>, Error> {
    let outlooks = app.read_across(outlook).await?;
    let now = app.now();
    let mut again: Option<Time> = None;
    for outlook in outlooks {
        if stop.is_cancelled() {
            break;
        }
        let next = match sweep(app, stop, &outlook, now).await {
            Ok(next) => next,
            Err(error) if error.is_deleted_company() => None,
            Err(error) => {
                let company = outlook.company.id.0;
                log_failure!(error, company, "failed to announce a company's due clients; trying again");
                None
            }
        };
        again = [again, next].into_iter().flatten().min();
    }
    Ok(again)
}

/// Sweeps one company if it is time; returns when it is time again, if known.
async fn sweep(
    app: &App,
    stop: &CancellationToken,
    outlook: &Outlook,
    now: Time,
) -> Result<Option<Time>, Error> {
    let Outlook { company, earliest } = outlook;
    let over = begun_everywhere(now);
    if earliest.iter().any(|stage| stage.snoozed_until.is_some_and(|date| date <= over)) {
        end_snoozes(app, company.id).await?;
    }
    match next_due(earliest, &company.settings) {
        Some(next) if next > now => Ok(Some(next)),
        Some(_) => Ok(announce(app, stop, company.id).await?.then_some(now)),
        None => Ok(None),
    }
}

/// A company's turn; returns whether it did anything, so that another check soon is worthwhile.
async fn announce(app: &App, stop: &CancellationToken, company: CompanyId) -> Result<bool, Error> {
    let (mut total, mut left) = (0, true);
    for _ in 0..TURN {
        let begun = Instant::now();
        let Stepped { announced, more } = step(app, company).await?;
        (total, left) = (total + announced, more);
        if !left || stop.is_cancelled() {
            break;
        }
        // Pause as long as the step took, so that this uses at most half of storage's time.
        tokio::time::sleep(begun.elapsed().clamp(LEAST_BREATH, MOST_BREATH)).await;
    }
    if total > 0 {
        metric::CONTACT_DUE.counter([]).increment(u64::try_from(total).unwrap_or(0));
    }
    Ok(total > 0 || left)
}
