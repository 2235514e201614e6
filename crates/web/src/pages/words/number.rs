//! Numbers with separators.

use rapport_app::read::CappedCount;

/// `1,932`.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let sign = if number < 0 { "−" } else { "" };
    format!("{sign}{}", group(&digits))
}

/// `1,932`, or `10,000+` if counting stopped there.
pub fn capped(count: &CappedCount) -> String {
    format!("{}{}", grouped(count.count), if count.capped { "+" } else { "" })
}

/// `300`, or `300+` if counting stopped there.
pub fn capped_at(count: i64, is_capped: bool) -> String {
    capped(&CappedCount { count, capped: is_capped })
}

/// `1 account`, `2 accounts`.
pub fn counted(number: i64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

pub(super) fn group(digits: &str) -> String {
    let (head, rest) = digits.split_at(digits.len() % 3);
    let parts = rest.as_bytes().chunks(3).map(|part| String::from_utf8_lossy(part).into_owned());
    let head = (!head.is_empty()).then(|| head.to_owned());
    head.into_iter().chain(parts).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let table =
            [(0, "0"), (999, "999"), (1_000, "1,000"), (48_000_123, "48,000,123"), (-1_500, "−1,500")];
        for (number, expected) in table {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(capped(&CappedCount { count: 10_000, capped: true }), "10,000+");
        assert_eq!((counted(1, "day", "days"), counted(2, "day", "days")), ("1 day".into(), "2 days".into()));
    }
}
