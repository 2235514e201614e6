//! The words that files use for stages: the company's own choices first, then common words in English and German.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::invalid::{Fault, FieldError, Invalid, as_str};
use crate::pipeline::Status;
use crate::text::Length;

/// How many words a company can choose a stage for.
pub const MAX_WORDS: usize = 500;
const MAX_WORD: Length = Length::up_to(100);
const KEEP: &str = "keep";

/// What a word in a status column means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Stage(Status),
    /// The stage of an existing account stays, and a new one begins as a prospect.
    Keep,
}

impl Meaning {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stage(status) => status.as_str(),
            Self::Keep => KEEP,
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text == KEEP {
            return Ok(Self::Keep);
        }
        Status::parse(text).map(Self::Stage).map_err(|_| {
            Fault::not_one_of("unknown_status", Status::ALL.map(Status::as_str).into_iter().chain([KEEP]))
        })
    }

    pub const fn status(self) -> Option<Status> {
        match self {
            Self::Stage(status) => Some(status),
            Self::Keep => None,
        }
    }
}

/// Common words, as `key` writes them. A stage's own name and label need no entry.
const USUAL: [(Status, &[&str]); 7] = [
    (
        Status::Prospect,
        &[
            "lead",
            "new",
            "new lead",
            "open",
            "cold",
            "suspect",
            "target",
            "interessent",
            "neu",
            "offen",
            "akquise",
        ],
    ),
    (
        Status::Contacted,
        &[
            "in contact",
            "reached out",
            "attempted to contact",
            "working",
            "qualified",
            "warm",
            "kontaktiert",
            "in kontakt",
            "angesprochen",
            "erstkontakt",
            "qualifiziert",
        ],
    ),
    (
        Status::InNegotiation,
        &[
            "negotiation",
            "negotiating",
            "opportunity",
            "proposal",
            "proposal sent",
            "quote sent",
            "offer sent",
            "contract sent",
            "verhandlung",
            "in verhandlung",
            "angebot",
            "angebot gesendet",
            "angebot versendet",
        ],
    ),
    (
        Status::InTrial,
        &[
            "trial",
            "trialing",
            "trialling",
            "free trial",
            "pilot",
            "poc",
            "evaluation",
            "testphase",
            "in testphase",
            "im test",
            "testkunde",
            "probephase",
        ],
    ),
    (
        Status::Customer,
        &[
            "client",
            "won",
            "closed won",
            "active",
            "active customer",
            "paying",
            "live",
            "kunde",
            "kundin",
            "bestandskunde",
            "gewonnen",
            "aktiv",
            "aktiver kunde",
            "aktivkunde",
        ],
    ),
    (
        Status::Lost,
        &[
            "closed lost",
            "churned",
            "cancelled",
            "canceled",
            "former customer",
            "ex customer",
            "inactive",
            "not interested",
            "disqualified",
            "unqualified",
            "verloren",
            "gekündigt",
            "ehemaliger kunde",
            "ex kunde",
            "exkunde",
            "inaktiv",
            "kein interesse",
            "abgesagt",
        ],
    ),
    (
        Status::DoNotContact,
        &[
            "dnc",
            "unsubscribed",
            "opted out",
            "opt out",
            "blocked",
            "nicht kontaktieren",
            "kontaktsperre",
            "werbesperre",
            "gesperrt",
        ],
    ),
];

/// The form in which words are compared: lower case, with single spaces between letters and digits.
pub fn key(word: &str) -> String {
    let lower = word.to_lowercase();
    let parts = lower.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty());
    let spaced = parts.collect::<Vec<_>>().join(" ");
    // A word of signs alone, such as "?", has no other form.
    if spaced.is_empty() { lower.trim().to_owned() } else { spaced }
}

/// The meaning of a word without anybody's choice.
pub fn usual(word: &str) -> Option<Status> {
    let key = key(word);
    let own = Status::parse(&key.replace(' ', "_")).ok();
    own.or_else(|| USUAL.iter().find(|(_, words)| words.contains(&key.as_str())).map(|(status, _)| *status))
}

/// Choices for words, by their key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusWords(BTreeMap<String, Meaning>);

impl StatusWords {
    /// Reads `{"Won": "customer", "n/a": "keep"}`.
    pub fn parse(sent: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut words = BTreeMap::new();
        let mut errors = Vec::new();
        for (word, value) in sent {
            match MAX_WORD.check(word).and_then(|()| as_str(value)).and_then(Meaning::parse) {
                Ok(meaning) => {
                    words.insert(key(word), meaning);
                }
                Err(Fault { code, detail }) => {
                    let word = word.replace('\0', "").replace('~', "~0").replace('/', "~1");
                    errors.push(FieldError { pointer: format!("/status_words/{word}"), code, detail });
                }
            }
        }
        if words.len() > MAX_WORDS {
            let detail = format!("must have at most {MAX_WORDS} words");
            return Err(Invalid::one("/status_words", "too_many", detail));
        }
        if errors.is_empty() { Ok(Self(words)) } else { Err(Invalid(errors)) }
    }

    /// From storage: keys and meanings. What can't be read is left out.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let known = |(word, meaning): (String, String)| Some((word, Meaning::parse(&meaning).ok()?));
        Self(pairs.into_iter().filter_map(known).take(MAX_WORDS).collect())
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, Meaning)> {
        self.0.iter().map(|(word, meaning)| (word.as_str(), *meaning))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These choices, changed by later ones. Beyond the limit, later words are not kept.
    pub fn extend(&mut self, later: &Self) {
        for (word, meaning) in &later.0 {
            if self.0.len() < MAX_WORDS || self.0.contains_key(word) {
                self.0.insert(word.clone(), *meaning);
            }
        }
    }

    /// The meaning of a word, chosen or usual.
    pub fn meaning(&self, word: &str) -> Option<Meaning> {
        let chosen = self.0.get(&key(word)).copied();
        chosen.or_else(|| usual(word).map(Meaning::Stage))
    }

    pub fn to_json(&self) -> Map<String, Value> {
        self.pairs().map(|(word, meaning)| (word.to_owned(), meaning.as_str().into())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn common_words_are_known() {
        let table = [
            ("Won", Some(Status::Customer)),
            ("Closed - Won", Some(Status::Customer)),
            ("trial", Some(Status::InTrial)),
            ("In Trial", Some(Status::InTrial)),
            ("in_negotiation", Some(Status::InNegotiation)),
            ("Kunde", Some(Status::Customer)),
            ("BESTANDSKUNDE", Some(Status::Customer)),
            ("Gekündigt", Some(Status::Lost)),
            ("Do Not Contact", Some(Status::DoNotContact)),
            ("Nicht kontaktieren!", Some(Status::DoNotContact)),
            ("Interessent", Some(Status::Prospect)),
            ("nowhere", None),
            ("?", None),
            ("", None),
        ];
        for (word, status) in table {
            assert_eq!(usual(word), status, "{word}");
        }
    }

    #[test]
    fn no_word_has_two_meanings() {
        let mut all: Vec<&str> = USUAL.iter().flat_map(|(_, words)| words.iter().copied()).collect();
        for word in &all {
            assert_eq!(key(word), *word, "as `key` writes it");
            let label = |status: &Status| key(status.label()) == **word || status.as_str() == *word;
            assert!(!Status::ALL.iter().any(label), "{word} needs no entry");
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_choice_comes_before_the_usual_meaning() {
        let sent = json!({"Won": "in_trial", "n/a": "keep", "Heiß": "in_negotiation"});
        let words = StatusWords::parse(sent.as_object().unwrap()).unwrap();
        assert_eq!(words.meaning("WON"), Some(Meaning::Stage(Status::InTrial)));
        assert_eq!(words.meaning("N/A"), Some(Meaning::Keep));
        assert_eq!(words.meaning("heiß"), Some(Meaning::Stage(Status::InNegotiation)));
        assert_eq!(words.meaning("Kunde"), Some(Meaning::Stage(Status::Customer)));
        assert_eq!(words.meaning("nowhere"), None);
        let stored = words.pairs().map(|(word, meaning)| (word.to_owned(), meaning.as_str().to_owned()));
        assert_eq!(StatusWords::from_pairs(stored), words);
        let mut changed = words.clone();
        changed.extend(&StatusWords::from_pairs([("won".to_owned(), "customer".to_owned())]));
        assert_eq!(changed.meaning("won"), Some(Meaning::Stage(Status::Customer)));
        assert_eq!(changed.meaning("n/a"), Some(Meaning::Keep));
    }

    #[test]
    fn every_wrong_choice_is_named() {
        let sent = json!({"a/b": "nowhere", "c": 1, "d": "keep"});
        let faults = StatusWords::parse(sent.as_object().unwrap()).unwrap_err().0;
        let found: Vec<(&str, &str)> =
            faults.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
        assert_eq!(found, [("/status_words/a~1b", "unknown_status"), ("/status_words/c", "wrong_type")]);
        let many: Map<String, Value> = (0..=MAX_WORDS).map(|n| (format!("w{n}"), json!("lost"))).collect();
        assert_eq!(StatusWords::parse(&many).unwrap_err().0[0].code, "too_many");
    }
}
