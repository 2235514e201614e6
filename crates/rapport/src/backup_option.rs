//! How often backups are made, as an option says it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _};

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
const LONGEST_DAYS: u64 = 366;

/// A time between backups, such as 24h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(pub Duration);

impl FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "must be a number and a unit, such as 30m, 24h or 7d".to_owned();
        let unit = text.chars().next_back().ok_or_else(bad)?;
        let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
        let number: u64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
        let interval = number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(bad)?;
        if interval.is_zero() || interval > Duration::from_hours(24 * LONGEST_DAYS) {
            return Err(format!("must be from 1s to {LONGEST_DAYS}d"));
        }
        Ok(Self(interval))
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (unit, size) =
            UNITS.into_iter().find(|(_, size)| seconds.is_multiple_of(*size)).unwrap_or(('s', 1));
        write!(f, "{}{unit}", seconds / size)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_number_and_a_unit() {
        for (text, shown) in [("24h", "1d"), ("90m", "90m"), ("7d", "7d"), ("1s", "1s"), ("3600s", "1h")] {
            assert_eq!(text.parse::<Interval>().unwrap().to_string(), shown, "{text}");
        }
        for bad in ["", "h", "24", "1.5h", "-1h", "1w", "1 h", "0m", "367d", "99999999999999999999d", "5é"] {
            assert!(bad.parse::<Interval>().is_err(), "{bad}");
        }
    }
}
