//! Names browsers by their `User-Agent`.

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

/// `Firefox on Linux`, or the header itself if neither is known.
pub fn named(text: &str) -> String {
    let known = |table: &[(&str, &'static str)]| {
        table.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| *name)
    };
    match (known(&BROWSERS), known(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) if text.is_empty() => "unknown".to_owned(),
        (None, _) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::named;

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
}
