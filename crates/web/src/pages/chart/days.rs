//! Counts per day as bars. The text alternative describes the trend.

use std::fmt;

use askama::filters::HtmlSafe;
use jiff::civil::{Date, Weekday};

use crate::pages::words::number::{counted, grouped};
use crate::pages::words::when::date;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 56.0;
/// The part of a day's slot that its bar takes.
const BAR_PART: f64 = 0.72;
/// The least height of a day that has anything, so that it is visible.
const MIN_HEIGHT: f64 = 2.0;
/// The height of a day without anything.
const EMPTY_HEIGHT: f64 = 0.75;
/// The ratio from which a rise or fall counts as a trend.
const RISE: f64 = 1.25;
const FALL: f64 = 0.75;
/// Weekends are quiet if they have less than this part of a working day.
const QUIET_PART: f64 = 1.0 / 3.0;

/// Counts of consecutive days, oldest first.
pub struct DaysChart {
    days: Vec<(Date, i64)>,
    label: String,
}

impl DaysChart {
    /// `what` starts the text alternative, such as "Activity per day".
    pub fn new(what: &str, days: Vec<(Date, i64)>) -> Self {
        let label = format!("{what} over {}: {}", counted(length(&days), "day", "days"), in_words(&days));
        Self { days, label }
    }

    pub fn first(&self) -> Option<Date> {
        self.days.first().map(|(day, _)| *day)
    }

    pub fn total(&self) -> i64 {
        total(&self.days)
    }
}

impl fmt::Display for DaysChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only numbers, dates and fixed texts, so nothing needs escaping.
        write!(
            f,
            r#"<svg class="chart days" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{}">"#,
            self.label
        )?;
        let most = float(self.days.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1));
        let place = WIDTH / float(length(&self.days).max(1));
        for (index, (day, count)) in (0..).zip(&self.days) {
            let is_empty = *count == 0;
            let height =
                if is_empty { EMPTY_HEIGHT } else { (float(*count) / most * HEIGHT).max(MIN_HEIGHT) };
            let (class, width) = if is_empty { ("track", place) } else { ("bar", place * BAR_PART) };
            write!(
                f,
                r#"<rect class="{class}" x="{:.2}" y="{:.1}" width="{width:.2}" height="{height:.1}"><title>{}: {}</title></rect>"#,
                float(index) * place,
                HEIGHT - height,
                date(*day),
                grouped(*count),
            )?;
        }
        f.write_str("</svg>")
    }
}

impl HtmlSafe for DaysChart {}

/// Describes the trend: how the last third compares to the first, the busiest day, and whether weekends are quiet.
fn in_words(days: &[(Date, i64)]) -> String {
    let total = total(days);
    let Some((busiest, most)) = days.iter().max_by_key(|(_, count)| *count).filter(|_| total > 0) else {
        return "nothing".to_owned();
    };
    let third = (days.len() / 3).max(1);
    let (before, after) = (average(&days[..third]), average(&days[days.len() - third..]));
    let trend = if after > before * RISE {
        format!("rising from {} to {} a day", about(before), about(after))
    } else if after < before * FALL {
        format!("falling from {} to {} a day", about(before), about(after))
    } else {
        format!("steady at {} a day", about(f64::midpoint(before, after)))
    };
    let is_weekend = |day: Date| matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
    let (weekend, week): (Vec<_>, Vec<_>) = days.iter().partition(|(day, _)| is_weekend(*day));
    let is_quiet = average(&weekend) < average(&week) * QUIET_PART;
    let quiet = if is_quiet { ", quiet at weekends" } else { "" };
    let all = counted(total, "event", "events");
    format!("{all}, {trend}{quiet}; busiest on {} with {}", date(*busiest), grouped(*most))
}

fn total(days: &[(Date, i64)]) -> i64 {
    days.iter().map(|(_, count)| *count).sum()
}

fn average(days: &[(Date, i64)]) -> f64 {
    float(total(days)) / float(length(days).max(1))
}

fn about(number: f64) -> String {
    if number <= 0.0 {
        "none".to_owned()
    } else if number < 1.0 {
        "less than one".to_owned()
    } else {
        format!("about {number:.0}")
    }
}

fn length(days: &[(Date, i64)]) -> i64 {
    i64::try_from(days.len()).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "drawn and rounded")]
fn float(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::time::Day;

    /// Ninety days, of which 2 January 1970, a Friday, is the first.
    fn days(count: impl Fn(i64) -> i64) -> Vec<(Date, i64)> {
        (0..90).map(|day| (Day::from_number(day + 1).date(), count(day))).collect()
    }

    #[test]
    fn the_trend_is_told_in_words() {
        let table = [
            (days(|_| 0), "Activity over 90 days: nothing"),
            (
                days(|day| if day < 30 { 8 } else { 40 }),
                "Activity over 90 days: 2,640 events, rising from about 8 to about 40 a day; \
                 busiest on 1 Apr 1970 with 40",
            ),
            (
                days(|day| if day == 0 { 3 } else { 0 }),
                "Activity over 90 days: 3 events, falling from less than one to none a day, quiet at weekends; \
                 busiest on 2 Jan 1970 with 3",
            ),
            (
                days(|day| if matches!(day % 7, 1 | 2) { 0 } else { 7 }),
                "Activity over 90 days: 448 events, steady at about 5 a day, quiet at weekends; \
                 busiest on 1 Apr 1970 with 7",
            ),
        ];
        for (days, expected) in table {
            assert_eq!(DaysChart::new("Activity", days).label, expected);
        }
    }

    #[test]
    fn each_day_has_its_bar_and_says_what_it_stands_for() {
        let drawn = DaysChart::new("Activity", days(|day| day % 2)).to_string();
        assert_eq!(drawn.matches("<rect").count(), 90);
        assert_eq!(drawn.matches("class=\"bar\"").count(), 45);
        assert!(drawn.contains("<title>3 Jan 1970: 1</title>"), "{drawn}");
        assert!(drawn.contains("role=\"img\" aria-label=\"Activity over 90 days: 45 events"), "{drawn}");
        assert!(DaysChart::new("Activity", Vec::new()).to_string().contains("nothing"));
    }
}
