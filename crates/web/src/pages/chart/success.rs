//! Deliveries per day: succeeded, failed and pending.

use std::fmt;

use askama::filters::HtmlSafe;
use jiff::civil::Date;
use rapport_app::read::webhook::Tally;

use crate::pages::words::number::grouped;
use crate::pages::words::when::date;

const SLOT: i64 = 20;
const BAR: i64 = 14;
const HEIGHT: i64 = 80;

/// One bar: a day and its deliveries by state.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    pub day: Date,
    pub tally: Tally,
}

impl Bar {
    pub fn name(&self) -> String {
        date(self.day)
    }

    pub fn next_day(&self) -> Date {
        self.day.tomorrow().unwrap_or(self.day)
    }
}

/// Bars from the oldest day to the newest.
pub struct SuccessChart(pub Vec<Bar>);

impl SuccessChart {
    /// The text alternative.
    pub fn summary(&self) -> String {
        let (succeeded, failed, open) = self.sums();
        format!(
            "Deliveries in {} days: {} succeeded, {} failed, {} pending",
            self.0.len(),
            grouped(succeeded),
            grouped(failed),
            grouped(open)
        )
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|bar| bar.tally.all() == 0)
    }

    pub fn is_capped(&self) -> bool {
        self.0.iter().any(|bar| bar.tally.capped)
    }

    /// The share of finished deliveries that succeeded, in percent.
    pub fn share(&self) -> Option<i64> {
        let (succeeded, failed, _) = self.sums();
        share(succeeded, failed)
    }

    fn sums(&self) -> (i64, i64, i64) {
        self.0.iter().fold((0, 0, 0), |(succeeded, failed, open), bar| {
            (succeeded + bar.tally.succeeded, failed + bar.tally.failed, open + bar.tally.open)
        })
    }
}

/// The share that succeeded in percent: 100 only if none failed, 0 only if none succeeded.
pub fn share(succeeded: i64, failed: i64) -> Option<i64> {
    let ended = succeeded + failed;
    match (succeeded, failed) {
        _ if ended == 0 => None,
        (_, 0) => Some(100),
        (0, _) => Some(0),
        _ => Some((succeeded * 100 / ended).clamp(1, 99)),
    }
}

impl fmt::Display for SuccessChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only numbers and dates, so nothing needs escaping.
        let width = i64::try_from(self.0.len()).unwrap_or(0) * SLOT;
        let most = self.0.iter().map(|bar| bar.tally.all()).max().unwrap_or(0).max(1);
        let summary = self.summary();
        write!(
            f,
            r#"<svg class="chart success" viewBox="0 0 {width} {HEIGHT}" height="{HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{summary}">"#
        )?;
        for (place, Bar { day, tally }) in (0_i64..).zip(&self.0) {
            let x = place * SLOT + (SLOT - BAR) / 2;
            let Tally { succeeded, failed, open, .. } = *tally;
            let more = if tally.capped { ", and more" } else { "" };
            write!(
                f,
                "<g><title>{}: {succeeded} succeeded, {failed} failed, {open} pending{more}</title>",
                date(*day)
            )?;
            let mut top = HEIGHT;
            for (count, class) in [(succeeded, "ok"), (failed, "failed"), (open, "track")] {
                if count == 0 {
                    continue;
                }
                let height = (count * (HEIGHT - 4) / most).max(2).min(top);
                top -= height;
                write!(f, r#"<rect class="{class}" x="{x}" y="{top}" width="{BAR}" height="{height}"/>"#)?;
            }
            f.write_str("</g>")?;
        }
        write!(f, r#"<line class="axis" x1="0" y1="{HEIGHT}" x2="{width}" y2="{HEIGHT}"/></svg>"#)
    }
}

impl HtmlSafe for SuccessChart {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_says_all_and_none_only_where_it_is_so() {
        let table = [
            ((0, 0), None),
            ((5, 0), Some(100)),
            ((0, 5), Some(0)),
            ((1_000, 1), Some(99)),
            ((1, 1_000), Some(1)),
            ((3, 1), Some(75)),
        ];
        for ((succeeded, failed), expected) in table {
            assert_eq!(share(succeeded, failed), expected, "{succeeded} {failed}");
        }
    }

    #[test]
    fn a_day_is_a_stack_within_the_figure() {
        let tally = Tally { succeeded: 1_000, failed: 1, open: 1, capped: true, newest: None };
        let day = Date::constant(2026, 11, 15);
        let chart = SuccessChart(vec![
            Bar { day, tally },
            Bar { day: day.tomorrow().unwrap(), tally: Tally::default() },
        ]);
        let drawn = chart.to_string();
        assert!(drawn.contains("15 Nov 2026: 1000 succeeded, 1 failed, 1 pending, and more"), "{drawn}");
        assert_eq!(drawn.matches("<rect").count(), 3);
        assert!(!drawn.contains("y=\"-"), "{drawn}");
        assert_eq!(chart.summary(), "Deliveries in 2 days: 1,000 succeeded, 1 failed, 1 pending");
    }
}
