//! Texts with `code` in backticks, in parts that a template can mark up.

/// A text with `code` marked up.
pub type Line<'a> = Vec<Span<'a>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    pub text: &'a str,
    pub is_code: bool,
}

/// The paragraphs of a text.
pub fn prose(text: &str) -> Vec<Line<'_>> {
    text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()).map(line).collect()
}

pub fn line(text: &str) -> Line<'_> {
    text.split('`').enumerate().map(|(place, text)| Span { text, is_code: place % 2 == 1 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_part_is_code() {
        let parts: Vec<(&str, bool)> = line("a `b` c").iter().map(|span| (span.text, span.is_code)).collect();
        assert_eq!(parts, [("a ", false), ("b", true), (" c", false)]);
        assert_eq!(prose("a\n\n\n\nb `c`\n\n").len(), 2);
    }
}
