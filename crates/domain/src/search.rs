//! The words by which accounts are searched: the folded words of the name, and the whole imported_id.
//!
//! A query matches an account if each of its words is a prefix of one of the account's words. Both sides are
//! folded here, so both engines find the same accounts with an index range.

use crate::text::fold;

/// How many words of a name are indexed, and how long each may be.
const MAX_WORDS: usize = 12;
const MAX_WORD_CHARS: usize = 48;

/// The words of an account, sorted and without duplicates.
pub fn words_of(name: &str, imported_id: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = split(name).take(MAX_WORDS).collect();
    words.extend(imported_id.map(|id| clip(&fold(id))).filter(|word| !word.is_empty()));
    words.sort_unstable();
    words.dedup();
    words
}

/// The words of a query. A complete imported_id is searched with `whole` instead.
pub fn query_words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = split(query).take(MAX_WORDS).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The query as a single word, to find an imported_id that contains punctuation.
pub fn whole(query: &str) -> String {
    clip(&fold(query.trim()))
}

/// A text greater than every text that begins with `prefix`: the end of an index range. Code points sort like
/// UTF-8 bytes on both engines.
pub fn after_prefix(prefix: &str) -> String {
    format!("{prefix}\u{10FFFF}")
}

fn split(text: &str) -> impl Iterator<Item = String> {
    let folded = fold(text);
    let words: Vec<String> = folded
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(clip)
        .collect();
    words.into_iter()
}

fn clip(word: &str) -> String {
    word.chars().take(MAX_WORD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_folded_and_deduplicated() {
        assert_eq!(words_of("Keller & Sohn, KELLER", Some("CRM-00418")), ["crm-00418", "keller", "sohn"]);
        assert_eq!(query_words("  Keller sohn "), ["keller", "sohn"]);
        assert_eq!(words_of("***", None), Vec::<String>::new());
        assert_eq!(words_of("Ōkubo Łódź", None), ["łódź", "ōkubo"]);
    }

    #[test]
    fn a_prefix_range_holds_what_begins_with_it() {
        let end = after_prefix("kel");
        assert!("kel" <= end.as_str() && "keller" < end.as_str() && "kem" > end.as_str());
    }
}
