//! Continues, part by part, fan-outs that were too large for the transaction of their change.

use std::time::Duration;

use rapport_app::fan_out::Continue;
use rapport_app::job_report::Job;
use rapport_app::{Access, App, Error};
use rapport_store::fan_out::companies;
use tokio_util::sync::CancellationToken;

use crate::rounds::{Rounds, unless_deleted};

/// What is written with a change itself goes to working receivers. It is sent first; the rest doesn't compete with it.
const HEAD_START: Duration = Duration::from_millis(4);
/// Parts of one company before the next company's turn.
const TURN: usize = 20;

/// Runs until `stop`: whenever this process commits a large fan-out, and regularly for those of other nodes.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds =
        Rounds::of(Job::FanOut, &app, &stop).woken_by(app.services().fan_out_continues(), Duration::ZERO);
    while rounds.begin() {
        tokio::time::sleep(HEAD_START).await;
        let ended = round(&app, &stop).await;
        rounds.pause(ended, every).await;
    }
}

/// Gives every company its turn until nothing is left.
async fn round(app: &App, stop: &CancellationToken) -> Result<(), Error> {
    loop {
        let mut more = false;
        for company in app.read_across(companies).await? {
            let mut left = TURN;
            let access = Access::System(company);
            while left > 0 && !stop.is_cancelled() && unless_deleted(app.write(&access, Continue).await)? {
                left -= 1;
            }
            more |= left == 0;
        }
        if !more || stop.is_cancelled() {
            return Ok(());
        }
    }
}
