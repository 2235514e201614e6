//! The phases of an attempt as a small bar.

use std::fmt;

use askama::filters::HtmlSafe;
use rapport_app::read::delivery::KeptAttempt;

const WIDTH: i64 = 120;
const HEIGHT: i64 = 8;

/// How long each phase took, in microseconds.
pub struct Phases {
    parts: Vec<Part>,
    total: i64,
}

/// A phase of an attempt.
pub struct Part {
    class: &'static str,
    pub name: &'static str,
    micros: i64,
}

impl Part {
    pub fn took(&self) -> String {
        millis(self.micros)
    }
}

impl Phases {
    pub fn of(attempt: &KeptAttempt) -> Self {
        let known = [
            ("dns", "DNS", attempt.dns_us),
            ("connect", "Connect", attempt.connect_us),
            ("tls", "TLS", attempt.tls_us),
            ("first", "First byte", attempt.first_byte_us),
        ];
        let parts: Vec<Part> = known
            .into_iter()
            .filter_map(|(class, name, micros)| micros.map(|micros| Part { class, name, micros }))
            .collect();
        Self { parts, total: attempt.total_us }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn total(&self) -> String {
        millis(self.total)
    }
}

/// `0.3 ms`, `38 ms`, `2,140 ms`.
fn millis(micros: i64) -> String {
    if micros < 10_000 {
        return format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100);
    }
    format!("{} ms", crate::pages::words::number::grouped((micros + 500) / 1_000))
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The numbers are beside it as text, so the bar is only decoration.
        write!(
            f,
            r#"<svg class="phases" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true"><rect class="rest" width="{WIDTH}" height="{HEIGHT}" rx="2"/>"#
        )?;
        let total = self.total.max(self.parts.iter().map(|part| part.micros).sum()).max(1);
        let mut before = 0;
        for Part { class, micros, .. } in &self.parts {
            let (from, to) = (before * WIDTH / total, (before + micros) * WIDTH / total);
            before += micros;
            let width = (to - from).max(1);
            write!(f, r#"<rect class="{class}" x="{from}" width="{width}" height="{HEIGHT}"/>"#)?;
        }
        f.write_str("</svg>")
    }
}

impl HtmlSafe for Phases {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_exact_where_it_matters() {
        for (micros, expected) in
            [(250, "0.2 ms"), (9_900, "9.9 ms"), (12_600, "13 ms"), (2_140_000, "2,140 ms")]
        {
            assert_eq!(millis(micros), expected);
        }
    }
}
