//! Cells that hold email addresses or a cadence.

use crate::company::CADENCE_DAYS;
use crate::invalid::Fault;
use crate::member::Email;

/// The most addresses in one cell.
const MAX_ADDRESSES: usize = 50;

/// Reads one or several email addresses, separated by commas, semicolons or spaces. Names around addresses in angle
/// brackets are left out.
pub fn emails(text: &str) -> Result<Vec<Email>, Fault> {
    let mut found: Vec<Email> = Vec::new();
    for part in parts(text) {
        let part = part.trim_start_matches("mailto:").trim_end_matches('.');
        let email = Email::parse(part)
            .map_err(|fault| Fault::new(fault.code, format!("{} ({part})", fault.detail)))?;
        if !found.contains(&email) {
            found.push(email);
        }
    }
    if found.len() > MAX_ADDRESSES {
        return Err(Fault::new("too_many", format!("must list at most {MAX_ADDRESSES} email addresses")));
    }
    Ok(found)
}

fn parts(text: &str) -> Vec<&str> {
    if text.contains('<') {
        let inside = text.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
        return inside.map(|(address, _)| address.trim()).collect();
    }
    let is_between = |letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '|');
    text.split(is_between).filter(|part| !part.is_empty()).collect()
}

/// The cadence that a cell gives an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cadence {
    Days(i64),
    /// The company's own.
    Company,
}

const COMPANY: [&str; 5] = ["default", "company", "company cadence", "standard", "firmenstandard"];
/// Words for a cadence, in days.
const NAMES: [(&str, i64); 20] = [
    ("daily", 1),
    ("täglich", 1),
    ("weekly", 7),
    ("wöchentlich", 7),
    ("biweekly", 14),
    ("fortnightly", 14),
    ("zweiwöchentlich", 14),
    ("14tägig", 14),
    ("monthly", 30),
    ("monatlich", 30),
    ("quarterly", 90),
    ("vierteljährlich", 90),
    ("quartalsweise", 90),
    ("half-yearly", 180),
    ("semiannually", 180),
    ("halbjährlich", 180),
    ("yearly", 365),
    ("annually", 365),
    ("annual", 365),
    ("jährlich", 365),
];
/// Units, and how many days one is.
const UNITS: [(&str, i64); 20] = [
    ("d", 1),
    ("day", 1),
    ("days", 1),
    ("tag", 1),
    ("tage", 1),
    ("tagen", 1),
    ("w", 7),
    ("week", 7),
    ("weeks", 7),
    ("woche", 7),
    ("wochen", 7),
    ("month", 30),
    ("months", 30),
    ("monat", 30),
    ("monate", 30),
    ("quarter", 90),
    ("quarters", 90),
    ("quartal", 90),
    ("year", 365),
    ("jahr", 365),
];

/// Reads `30`, `30 days`, `every 6 weeks`, `alle 2 Wochen`, `quarterly`, or `default` for the company's cadence.
pub fn cadence(text: &str) -> Result<Cadence, Fault> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let name = words.join(" ");
    if COMPANY.contains(&name.as_str()) {
        return Ok(Cadence::Company);
    }
    let days = match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, days)) => Some(*days),
        None => counted(&words),
    };
    days.filter(|days| CADENCE_DAYS.contains(days)).map(Cadence::Days).ok_or_else(|| {
        let (least, most) = (CADENCE_DAYS.start(), CADENCE_DAYS.end());
        let detail =
            format!("must be a number of days from {least} to {most}, or a cadence such as every 6 weeks");
        Fault::new("out_of_range", detail)
    })
}

fn counted(words: &[&str]) -> Option<i64> {
    let (is_every, words) = match words {
        ["every" | "alle" | "jede" | "jeden" | "jedes", rest @ ..] => (true, rest),
        all => (false, all),
    };
    let (number, unit) = match words {
        [unit] if is_every && unit.starts_with(char::is_alphabetic) => ("1", *unit),
        [word] => {
            let end = word.find(|letter: char| !letter.is_ascii_digit());
            end.map_or((*word, "days"), |end| word.split_at(end))
        }
        [number, unit] => (*number, *unit),
        _ => return None,
    };
    let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, days)| *days)?;
    number.parse::<i64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_may_hold_several_addresses() {
        let table = [
            ("Anna@Example.com", "anna@example.com"),
            ("a@x.de, b@x.de;c@x.de d@x.de\ne@x.de", "a@x.de b@x.de c@x.de d@x.de e@x.de"),
            ("Anna Berg <anna@x.de>, \"Bo\" <bo@x.de>", "anna@x.de bo@x.de"),
            ("mailto:anna@x.de", "anna@x.de"),
            ("a@x.de; A@X.de;", "a@x.de"),
            (" , ", ""),
        ];
        for (text, expected) in table {
            let found = emails(text).unwrap();
            assert_eq!(found.iter().map(Email::as_str).collect::<Vec<_>>().join(" "), expected, "{text}");
        }
        for text in ["anna", "anna@", "a@x.de, b(at)x.de"] {
            assert_eq!(emails(text).unwrap_err().code, "malformed", "{text}");
        }
        assert!(emails("a@x.de, b(at)x.de").unwrap_err().detail.contains("b(at)x.de"));
        let many = (0..=MAX_ADDRESSES).map(|number| format!("a{number}@x.de")).collect::<Vec<_>>().join(",");
        assert_eq!(emails(&many).unwrap_err().code, "too_many");
    }

    #[test]
    fn a_cadence_is_a_number_of_days_or_a_name() {
        let table = [
            ("30", Some(30)),
            ("30 days", Some(30)),
            ("30d", Some(30)),
            ("every 6 weeks", Some(42)),
            ("alle 2 Wochen", Some(14)),
            ("14 Tage", Some(14)),
            ("jeden Monat", Some(30)),
            ("every week", Some(7)),
            ("week", None),
            ("Weekly", Some(7)),
            ("monatlich", Some(30)),
            ("vierteljährlich", Some(90)),
            ("Half-yearly", Some(180)),
            ("jährlich", Some(365)),
            ("0", None),
            ("1.5", None),
            ("-3", None),
            ("often", None),
            ("99999999999999999999", None),
        ];
        for (text, days) in table {
            assert_eq!(cadence(text).ok(), days.map(Cadence::Days), "{text}");
        }
        assert_eq!(cadence("Default"), Ok(Cadence::Company));
        assert_eq!(cadence("0").unwrap_err().code, "out_of_range");
    }
}
