//! Redeliveries of many, taken further step by step. Their state is in the database: a restart goes on
//! where it stood, and several nodes share the work without doing it twice.

use std::time::Duration;

use rapport_app::redelivery::{Stepped, step};
use rapport_app::{App, Error};
use rapport_store::redelivery::running;
use tokio_util::sync::CancellationToken;

/// How often redeliveries under way are looked at, and how often it is looked whether there are any.
const BUSY: Duration = Duration::from_millis(250);
const IDLE: Duration = Duration::from_secs(1);
/// Steps of one redelivery before the next one has its turn.
const TURN: usize = 5;

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken) {
    loop {
        let pause = match round(&app, &stop).await {
            Ok(true) => BUSY,
            Ok(false) => IDLE,
            Err(error) => {
                tracing::warn!(%error, "redeliveries could not be taken further; trying again");
                IDLE
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Gives every redelivery under way its turn; says whether there were any.
async fn round(app: &App, stop: &CancellationToken) -> Result<bool, Error> {
    let under_way = app.read_across(running).await?;
    for (company, id) in &under_way {
        for _ in 0..TURN {
            if stop.is_cancelled() || step(app, *company, *id).await? != Stepped::More {
                break;
            }
        }
    }
    Ok(!under_way.is_empty())
}
