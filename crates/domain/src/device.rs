//! What a `User-Agent` says about a person's browser and system, in the words that people use.

use std::fmt;

/// The first match counts, because most browsers also claim to be others.
const BROWSERS: [(&str, &str); 6] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];
const SYSTEMS: [(&str, &str); 6] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("Linux", "Linux"),
];

/// A browser and the system it runs on, as far as both are known. Contains none of the header's own text, which anyone
/// can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Device {
    browser: Option<&'static str>,
    system: Option<&'static str>,
}

impl Device {
    pub fn of(user_agent: &str) -> Self {
        let known = |table: &[(&str, &'static str)]| {
            table.iter().find(|(mark, _)| user_agent.contains(mark)).map(|(_, name)| *name)
        };
        Self { browser: known(&BROWSERS), system: known(&SYSTEMS) }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.browser, self.system) {
            (Some(browser), Some(system)) => write!(f, "{browser} on {system}"),
            (Some(browser), None) => f.write_str(browser),
            (None, Some(system)) => write!(f, "an unknown program on {system}"),
            (None, None) => f.write_str("an unknown program"),
        }
    }
}

/// `Firefox on Linux`, or the header itself if the browser isn't known. For the person who sent it.
pub fn named(user_agent: &str) -> String {
    let device = Device::of(user_agent);
    match device.browser {
        Some(_) => device.to_string(),
        None if user_agent.is_empty() => "unknown".to_owned(),
        None => user_agent.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_called_what_people_call_them() {
        let table = [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1",
                "Safari on iPhone",
            ),
            ("curl/8.0", "curl"),
            ("A test", "A test"),
            ("", "unknown"),
        ];
        for (text, expected) in table {
            assert_eq!(named(text), expected);
        }
    }

    #[test]
    fn nobody_puts_their_own_words_into_a_device() {
        let table = [
            ("Firefox/140.0 call +1 900 now", "Firefox"),
            ("Your account is locked. Call +1 900 now.", "an unknown program"),
            ("Linux: call +1 900 now", "an unknown program on Linux"),
        ];
        for (text, expected) in table {
            assert_eq!(Device::of(text).to_string(), expected);
        }
    }
}
