//! Continues, part by part, fan-outs that were too large for the transaction of their change.

use std::time::Duration;

use rapport_app::fan_out::Continue;
use rapport_app::job_report::Job;
use rapport_app::{Access, App, Error, log_failure};
use rapport_store::fan_out::companies;
use tokio_util::sync::CancellationToken;

/// Parts of one company before the next company's turn.
const TURN: usize = 20;

/// Runs until `stop`: whenever this process commits a large fan-out, and regularly for those of other nodes.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    loop {
        app.services().jobs().begin(Job::FanOut, app.now());
        let ended = round(&app, &stop).await;
        if let Err(error) = &ended {
            log_failure!(error, "failed to continue a fan-out; trying again");
        }
        app.services().jobs().end(Job::FanOut, app.now(), ended.as_ref().err(), every);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
            () = app.services().fan_out_continues().notified(), if ended.is_ok() => {}
        }
    }
}

/// Gives every company its turn until nothing is left.
async fn round(app: &App, stop: &CancellationToken) -> Result<(), Error> {
    loop {
        let mut more = false;
        for company in app.read_across(companies).await? {
            let mut left = TURN;
            while left > 0 && !stop.is_cancelled() && app.write(&Access::System(company), Continue).await? {
                left -= 1;
            }
            more |= left == 0;
        }
        if !more || stop.is_cancelled() {
            return Ok(());
        }
    }
}
