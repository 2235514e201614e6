//! The weekly digest in the background: every node looks now and then whose is due. The database decides which of
//! them makes it.

use std::time::Duration;

use rapport_app::digest::{Made, make_due};
use rapport_app::job_report::Job;
use rapport_app::{App, log_failure};
use tokio_util::sync::CancellationToken;

/// How often it is looked, unless a test wants it otherwise.
pub const EVERY: Duration = Duration::from_secs(20);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut made = Made::new();
    loop {
        app.services().jobs().begin(Job::Digest, app.now());
        let ended = make_due(&app, &mut made).await;
        if let Err(error) = &ended {
            log_failure!(error, "digests could not be made; trying again");
        }
        app.services().jobs().end(Job::Digest, app.now(), ended.as_ref().err(), every);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
    }
}
