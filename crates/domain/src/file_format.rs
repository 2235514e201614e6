//! The file types of exports.

use crate::invalid::Fault;
use crate::schema::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    /// One JSON object on each line.
    JsonLines,
}

impl Format {
    pub const ALL: [Self; 2] = [Self::Csv, Self::JsonLines];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| Fault::not_one_of("unknown_format", Self::ALL.map(Self::as_str)))
    }
}

words!(Format, "FileFormat", "`jsonl` has one JSON object on each line.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_one_of_two_words() {
        for format in Format::ALL {
            assert_eq!(Format::parse(format.as_str()), Ok(format));
        }
        for unknown in ["", "CSV", "json", "zip"] {
            assert_eq!(Format::parse(unknown).unwrap_err().code, "unknown_format", "{unknown}");
        }
    }
}
