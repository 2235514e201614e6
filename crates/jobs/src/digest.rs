//! The weekly digest in the background: every node checks now and then which digests are due. The database
//! decides which node creates each.

use std::time::Duration;

use rapport_app::App;
use rapport_app::digest::{Made, make_due};
use rapport_app::job_report::Job;
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// How often it checks, unless a test sets another interval.
pub const EVERY: Duration = Duration::from_secs(20);

/// Runs until `stop`.
pub async fn run(app: App, stop: CancellationToken, every: Duration) {
    let mut rounds = Rounds::of(Job::Digest, &app, &stop);
    let mut made = Made::new();
    while rounds.begin() {
        let ended = make_due(&app, &mut made).await;
        rounds.pause(ended, every).await;
    }
}
