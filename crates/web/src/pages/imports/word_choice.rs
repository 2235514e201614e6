//! The words of a status column, each with the stage that it means.

use std::collections::HashSet;

use rapport_domain::import::Import;
use rapport_domain::import::status_word::{Meaning, key};
use rapport_domain::pipeline::Status;
use serde_json::{Map, Value};

use crate::pages::kit::form::Form;

/// How many words a page offers.
const MOST_WORDS: usize = 100;

/// A word, with the names of its two form fields.
pub struct WordChoice {
    pub text: String,
    pub field: String,
    pub text_field: String,
    /// What it means now; empty if that is unknown.
    pub meaning: &'static str,
}

/// The different words in the status column: those in the beginning of the file, and those that failed further on.
pub fn words(import: &Import, values: &[Vec<String>]) -> Vec<WordChoice> {
    let Some(number) = import.column_of("status") else { return Vec::new() };
    let failed = import.preview.iter().flat_map(|preview| failed(preview, &import.columns[number].name));
    let first = values.get(number).into_iter().flatten().map(String::as_str);
    let mut known = HashSet::new();
    // Unknown words first: they are what a person has to decide.
    let mut found: Vec<&str> = failed.chain(first).filter(|word| known.insert(key(word))).collect();
    found.sort_by_key(|word| import.words.meaning(word).is_some());
    let choice = |(number, text): (usize, &str)| WordChoice {
        text: text.to_owned(),
        field: format!("word-{number}"),
        text_field: format!("word-text-{number}"),
        meaning: import.words.meaning(text).map_or("", Meaning::as_str),
    };
    found.into_iter().take(MOST_WORDS).enumerate().map(choice).collect()
}

fn failed<'a>(preview: &'a Value, column: &'a str) -> impl Iterator<Item = &'a str> {
    let groups = preview["failures"].as_array().into_iter().flatten();
    let unknown = groups.filter(move |group| group["column"] == column && group["code"] == "unknown_status");
    let values = unknown.flat_map(|group| group["values"].as_array().into_iter().flatten());
    values.filter_map(|value| value["value"].as_str())
}

/// The stages that a form chooses for words, as far as they differ from what the words mean already.
pub fn chosen(form: &Form, import: &Import) -> Map<String, Value> {
    let word = |number: usize| {
        let (text, meaning) =
            (form.given(&format!("word-text-{number}"))?, form.given(&format!("word-{number}"))?);
        let is_known = import.words.meaning(text).is_some_and(|known| known.as_str() == meaning);
        (!is_known).then(|| (text.to_owned(), Value::from(meaning)))
    };
    (0..MOST_WORDS).filter_map(word).collect()
}

/// What a word can mean.
pub fn options() -> Vec<(&'static str, &'static str)> {
    let stages = Status::ALL.map(|status| (status.as_str(), status.label()));
    stages.into_iter().chain([(Meaning::Keep.as_str(), "Leave the stage unchanged")]).collect()
}
