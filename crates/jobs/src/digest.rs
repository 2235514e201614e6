//! The weekly digest in the background: every node checks now and then which digests are due. The database
//! decides which node creates each.

use std::time::Duration;

use rapport_app::digest::{Made, make_due};
use rapport_app::job_report::Job;
use rapport_app::{App, log_failure};
use tokio_util::sync::CancellationToken;

/// How often it checks, unless a test sets another interval.
pub const EVERY: Duration = Duration::from_secs(20);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut made = Made::new();
    loop {
        app.services().jobs().begin(Job::Digest, app.now());
        let ended = make_due(&app, &mut made).await;
        if let Err(error) = &ended {
            log_failure!(error, "failed to create digests; trying again");
        }
        app.services().jobs().end(Job::Digest, app.now(), ended.as_ref().err(), every);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
    }
}
