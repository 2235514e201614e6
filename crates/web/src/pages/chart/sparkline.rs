//! Counts per day as a small line. It ends yesterday: a day that has just begun would look like a fall.

use std::fmt::{self, Write as _};

use askama::filters::HtmlSafe;
use rapport_domain::time::Day;

use crate::pages::words::number::{counted, grouped};
use crate::pages::words::when::date;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 48.0;
/// Room for the line's thickness.
const EDGE: f64 = 1.5;

/// Counts of consecutive days, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sparkline {
    days: Vec<(Day, i64)>,
}

impl Sparkline {
    /// The days up to `today`. Days missing from `found` have a count of zero.
    pub fn new(found: &[(Day, i64)], today: Day, days: i64) -> Self {
        let count = |day: Day| found.iter().find(|(found, _)| *found == day).map_or(0, |(_, count)| *count);
        let days = (0..days).rev().map(|back| today.minus_days(back)).map(|day| (day, count(day)));
        Self { days: days.collect() }
    }

    pub fn total(&self) -> i64 {
        self.days.iter().map(|(_, count)| count).sum()
    }

    pub fn today(&self) -> i64 {
        self.days.last().map_or(0, |(_, count)| *count)
    }

    pub fn first_day(&self) -> String {
        self.days.first().map(|(day, _)| date(day.date())).unwrap_or_default()
    }

    fn label(&self) -> String {
        let busiest = self.days.iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0);
        let Some((day, most)) = busiest else { return "Activity per day: none".to_owned() };
        let (all, days) = (counted(self.total(), "event", "events"), self.days.len());
        format!(
            "Activity per day: {all} in {days} days, {} today so far, the most on {} with {}",
            grouped(self.today()),
            date(day.date()),
            grouped(*most)
        )
    }
}

impl fmt::Display for Sparkline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only numbers, dates and fixed texts, so nothing needs escaping.
        let whole_days = self.days.split_last().map_or(&[][..], |(_, before)| before);
        let most = float(whole_days.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1));
        let step = WIDTH / float(i64::try_from(whole_days.len()).unwrap_or(1).max(2) - 1);
        let mut points = String::new();
        for (index, (_, count)) in (0..).zip(whole_days) {
            let y = HEIGHT - EDGE - float(*count) / most * (HEIGHT - 2.0 * EDGE);
            write!(points, "{:.1},{y:.1} ", float(index) * step)?;
        }
        let points = points.trim_end();
        write!(
            f,
            r#"<svg class="chart spark" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{}"><polygon class="area" points="0,{HEIGHT} {points} {WIDTH},{HEIGHT}"/><polyline class="curve" points="{points}"/></svg>"#,
            self.label()
        )
    }
}

impl HtmlSafe for Sparkline {}

#[expect(clippy::cast_precision_loss, reason = "drawn and rounded")]
fn float(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_without_anything_are_drawn_too() {
        let today = Day::from_number(20_000);
        let found = [(today.minus_days(2), 4), (today, 2), (today.minus_days(3), 100)];
        let line = Sparkline::new(&found, today, 3);
        assert_eq!((line.total(), line.today()), (6, 2));
        let drawn = line.to_string();
        assert!(drawn.contains(r#"points="0.0,1.5 300.0,46.5""#), "{drawn}");
        assert!(
            drawn.contains("6 events in 3 days, 2 today so far, the most on 2 Oct 2024 with 4"),
            "{drawn}"
        );
        // However little there is today, the line doesn't fall.
        let steady: Vec<(Day, i64)> = (1..90).map(|back| (today.minus_days(back), 7)).collect();
        let drawn = Sparkline::new(&steady, today, 90).to_string();
        assert!(drawn.contains("300.0,1.5\"/>") && !drawn.contains("46.5"), "{drawn}");
        assert!(Sparkline::new(&[], today, 90).to_string().contains("Activity per day: none"));
    }
}
