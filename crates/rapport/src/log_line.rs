//! Keeps each record of the text log on one line. Values such as the message of an error may repeat what somebody else
//! sent, and a line break in them would begin a line that looks like one of ours.

use std::borrow::Cow;
use std::io::{self, Write};

/// Writes records, each with one call, and escapes what isn't text in them: line breaks, terminal codes and the like.
pub struct OneLine<W> {
    pub to: W,
    /// Whether the formatter colours the text. It then escapes the terminal codes in values itself.
    pub has_colours: bool,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        self.to.write_all(escaped(&text, self.has_colours).as_bytes())?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A record, with nothing but its end as a line break.
fn escaped(record: &str, has_colours: bool) -> Cow<'_, str> {
    let must_escape = |char: char| {
        let is_break = char.is_control() || matches!(char, '\u{2028}' | '\u{2029}');
        is_break && !(has_colours && char == '\u{1b}')
    };
    let text = record.strip_suffix('\n').unwrap_or(record);
    if !text.contains(must_escape) {
        return Cow::Borrowed(record);
    }
    let mut escaped = String::with_capacity(record.len() + 16);
    for char in text.chars() {
        if must_escape(char) {
            escaped.extend(char.escape_default());
        } else {
            escaped.push(char);
        }
    }
    escaped.push_str(&record[text.len()..]);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_record_breaks_the_line() {
        for (record, expected) in [
            ("login failed client=192.0.2.7\n", "login failed client=192.0.2.7\n"),
            ("a\nb\r\nc\n", "a\\nb\\r\\nc\n"),
            ("a\n\n", "a\\n\n"),
            ("a\u{1b}[2Kb\tc\u{7}\0\n", "a\\u{1b}[2Kb\\tc\\u{7}\\u{0}\n"),
            ("a\u{85}b\u{2028}c\u{2029}d\n", "a\\u{85}b\\u{2028}c\\u{2029}d\n"),
            ("Müller \\n “quoted”\n", "Müller \\n “quoted”\n"),
            ("no end\nhere", "no end\\nhere"),
            ("", ""),
        ] {
            assert_eq!(escaped(record, false), expected);
        }
        assert_eq!(escaped("\u{1b}[32mINFO\u{1b}[0m a\nb\n", true), "\u{1b}[32mINFO\u{1b}[0m a\\nb\n");
    }
}
