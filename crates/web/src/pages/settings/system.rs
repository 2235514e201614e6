//! The state of the service: version, address, database and background jobs.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use rapport_app::backup_report::Backups;
use rapport_app::job_report::{Job, JobReport};
use rapport_app::read::system::{Facts, facts};

use super::tabbed;
use crate::pages::kit::frame::{Frame, Page as _, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::{Pages, SETTINGS};

const PATH: &str = "/settings/system";
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show))
}

#[derive(Template)]
#[template(path = "settings/system.html")]
struct SystemPage {
    frame: Frame,
    version: &'static str,
    facts: Facts,
    /// Writes waiting for the database.
    waiting: usize,
    jobs: Vec<(Job, JobReport)>,
    backups: Backups,
}
framed!("settings": SystemPage);
tabbed!("system": SystemPage);

async fn show(visit: Visit) -> Result<Response, Refusal> {
    let frame = visit.frame(SETTINGS).await?;
    let facts = visit.pages.app().read_across(facts).await.map_err(|error| visit.visitor.refused(error))?;
    let waiting = visit.pages.app().store().figures().waiting;
    let jobs = visit.pages.app().services().jobs().all();
    let backups = visit.pages.app().services().backups().get();
    Ok(SystemPage { frame, version: VERSION, facts, waiting, jobs, backups }.respond())
}

/// `48.2 MB`.
fn size(bytes: i64) -> String {
    let mut units = ["kB", "MB", "GB", "TB"].into_iter();
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1_000, units.next().unwrap_or_default());
    for larger in units {
        if tenths < 10_000 {
            break;
        }
        (tenths, unit) = (tenths / 1_000, larger);
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        let table = [
            (0, "0.0 kB"),
            (4_096, "4.0 kB"),
            (999_999, "999.9 kB"),
            (48_234_567, "48.2 MB"),
            (7_500_000_000, "7.5 GB"),
        ];
        for (bytes, expected) in table {
            assert_eq!(size(bytes), expected);
        }
    }
}
