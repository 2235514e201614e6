//! The stages of the pipeline as bars. The stage with the most accounts has the longest.

use std::fmt;

use askama::filters::HtmlSafe;
use rapport_app::read::CappedCount;
use rapport_app::read::pipeline::Stage;
use rapport_domain::pipeline::Status;

use crate::pages::words::number::capped;

const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 10.0;
/// The least width of a stage that has accounts, so that it is visible.
const LEAST: f64 = 2.0;

/// The label of a stage's number for screen readers: `3 accounts, Customer`.
pub fn label(stage: &Stage) -> String {
    let CappedCount { count, capped: more } = stage.accounts;
    let accounts = if count == 1 && !more { "account" } else { "accounts" };
    format!("{} {accounts}, {}", capped(&stage.accounts), stage.status.label())
}

/// The bar of one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageBar {
    status: Status,
    accounts: CappedCount,
    width: f64,
}

impl StageBar {
    /// Bars for all stages, in their order.
    pub fn all(stages: &[Stage]) -> Vec<Self> {
        let most = stages.iter().map(|stage| stage.accounts.count).max().unwrap_or(0).max(1);
        let bar = |stage: &Stage| {
            let share = float(stage.accounts.count) / float(most) * WIDTH;
            let width = if stage.accounts.count == 0 { 0.0 } else { share.max(LEAST) };
            Self { status: stage.status, accounts: stage.accounts, width }
        };
        stages.iter().map(bar).collect()
    }
}

impl fmt::Display for StageBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only numbers and fixed texts, so nothing needs escaping.
        let Self { status, accounts, width } = self;
        let (count, label) = (capped(accounts), status.label());
        write!(
            f,
            r#"<svg class="chart stage {status}" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}: {count}"><rect class="track" width="{WIDTH}" height="{HEIGHT}" rx="2"/><rect class="hue" width="{width:.1}" height="{HEIGHT}" rx="2"/></svg>"#
        )
    }
}

impl HtmlSafe for StageBar {}

#[expect(clippy::cast_precision_loss, reason = "drawn and rounded")]
fn float(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_stages_are_large() {
        let stage = |status, count| Stage {
            status,
            accounts: CappedCount { count, capped: count > 1_000 },
            values: Vec::new(),
            as_of: None,
        };
        let stages = [
            stage(Status::Prospect, 2_000),
            stage(Status::Customer, 500),
            stage(Status::Lost, 1),
            stage(Status::InTrial, 0),
        ];
        let drawn: Vec<String> = StageBar::all(&stages).iter().map(ToString::to_string).collect();
        for (bar, width) in drawn.iter().zip(["200.0", "50.0", "2.0", "0.0"]) {
            assert!(bar.contains(&format!("class=\"hue\" width=\"{width}\"")), "{bar}");
        }
        assert!(drawn[0].contains("aria-label=\"Prospect: 2,000+\""), "{}", drawn[0]);
        assert_eq!(label(&stages[0]), "2,000+ accounts, Prospect");
        assert_eq!(label(&stages[2]), "1 account, Lost");
        assert!(StageBar::all(&[stage(Status::Lost, 0)])[0].to_string().contains("width=\"0.0\""));
    }
}
