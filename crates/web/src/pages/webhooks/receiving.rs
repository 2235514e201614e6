//! How to receive webhooks: requests, response codes and signatures. The numbers come from the rules themselves.

use askama::Template;
use axum::response::Response;
use rapport_domain::delivery::{HISTORY_DAYS, SCHEDULE_SECONDS, TOTAL_TIMEOUT_SECONDS};
use rapport_domain::event::Kind;
use rapport_domain::standard_webhook::TOLERANCE_SECONDS;
use rapport_domain::webhook::{MAX_STREAK, SELECTABLE};

use crate::pages::WEBHOOKS;
use crate::pages::kit::frame::{Frame, Page as _, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::webhooks::meaning;

const TOLERANCE_MINUTES: i64 = TOLERANCE_SECONDS / 60;

/// A program from the documentation that verifies a signature. A test runs it.
pub struct Snippet {
    pub language: &'static str,
    pub code: &'static str,
}

/// For `webhook-signature`.
pub static SNIPPETS: [Snippet; 6] = [
    Snippet { language: "Python", code: include_str!("../../../../../docs/receiving/standard.py") },
    Snippet { language: "Node.js", code: include_str!("../../../../../docs/receiving/standard.js") },
    Snippet { language: "Go", code: include_str!("../../../../../docs/receiving/standard.go") },
    Snippet { language: "Rust", code: include_str!("../../../../../docs/receiving/standard.rs") },
    Snippet { language: "PHP", code: include_str!("../../../../../docs/receiving/standard.php") },
    Snippet { language: "Shell", code: include_str!("../../../../../docs/receiving/standard.sh") },
];

/// For `X-Service-Signature`.
static SERVICE_SNIPPETS: [Snippet; 6] = [
    Snippet { language: "Python", code: include_str!("../../../../../docs/receiving/verify.py") },
    Snippet { language: "Node.js", code: include_str!("../../../../../docs/receiving/verify.js") },
    Snippet { language: "Go", code: include_str!("../../../../../docs/receiving/verify.go") },
    Snippet { language: "Rust", code: include_str!("../../../../../docs/receiving/verify.rs") },
    Snippet { language: "PHP", code: include_str!("../../../../../docs/receiving/verify.php") },
    Snippet { language: "Shell", code: include_str!("../../../../../docs/receiving/verify.sh") },
];

#[derive(Template)]
#[template(path = "webhooks/receiving.html")]
struct ReceivingPage {
    frame: Frame,
    snippets: &'static [Snippet],
    service_snippets: &'static [Snippet],
    kinds: Vec<(Kind, &'static str)>,
    schedule: String,
}
framed!("webhooks": ReceivingPage);

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let frame = visit.frame(WEBHOOKS).await?;
    let kinds = SELECTABLE.into_iter().chain([Kind::WebhookTest]);
    let kinds = kinds.map(|kind| (kind, meaning(kind))).collect();
    let (snippets, service_snippets) = (&SNIPPETS, &SERVICE_SNIPPETS);
    Ok(ReceivingPage { frame, snippets, service_snippets, kinds, schedule: schedule() }.respond())
}

/// `5 s, 5 min, 2 h`.
fn schedule() -> String {
    let wait = |seconds: &i64| match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    };
    SCHEDULE_SECONDS.iter().map(wait).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_the_documentation_says() {
        let document = include_str!("../../../../../docs/receiving-webhooks.md");
        assert!(document.contains(&format!("tried again after {}", schedule())), "{}", schedule());
        assert!(document.contains(&format!("within {TOTAL_TIMEOUT_SECONDS} seconds")));
        assert!(document.contains(&format!("After {MAX_STREAK} failed attempts in a row")));
        assert!(document.contains(&format!("more than {TOLERANCE_MINUTES} minutes")));
        for Snippet { language, .. } in SNIPPETS.iter().chain(&SERVICE_SNIPPETS) {
            assert!(document.contains(&format!("| {language} |")), "{language}");
        }
    }
}
