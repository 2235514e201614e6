//! Which of the latest events a webhook would receive, in words.

use rapport_app::read::webhook::Previewed;
use rapport_domain::channel::Channel;
use rapport_domain::event_filter::{EventFilter, Judgement, Mismatch};
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use crate::pages::kit::conditions::{channel_names, field_words};

/// A past event, whether it would be sent, and if not, why.
pub struct Line {
    pub kind: &'static str,
    pub at: Time,
    pub account: Option<(AccountId, Option<String>)>,
    pub is_sent: bool,
    pub reason: String,
}

pub fn lines(previewed: Vec<Previewed>) -> Vec<Line> {
    let line = |Previewed { kind, at, account, judgement }: Previewed| Line {
        kind: kind.as_str(),
        at,
        account,
        is_sent: judgement == Judgement::Sent,
        reason: reason(&judgement),
    };
    previewed.into_iter().map(line).collect()
}

fn reason(judgement: &Judgement) -> String {
    match judgement {
        Judgement::Sent => String::new(),
        Judgement::NotSelected => "This event isn’t selected.".to_owned(),
        Judgement::Filtered(Mismatch::From(status)) => format!("It moved from {}.", status.label()),
        Judgement::Filtered(Mismatch::NotAMove) => "It isn’t a move, so it has no previous stage.".to_owned(),
        Judgement::Filtered(Mismatch::To(status)) => format!("The stage is {}.", status.label()),
        Judgement::Filtered(Mismatch::Channel) => "The channel doesn’t match.".to_owned(),
        Judgement::Filtered(Mismatch::Field(key)) => format!("The field {key} doesn’t match."),
        Judgement::Erased => "Its payload was erased.".to_owned(),
    }
}

/// The conditions of a filter, as pairs of name and text.
pub fn filter_words(filter: &EventFilter, channels: &[Channel]) -> Vec<(&'static str, String)> {
    let stages =
        |statuses: &[Status]| statuses.iter().map(|status| status.label()).collect::<Vec<_>>().join(", ");
    let parts = [
        ("From stage", stages(&filter.from)),
        ("To stage", stages(&filter.to)),
        ("Channel", channel_names(&filter.channels, channels)),
        ("Custom fields", field_words(&filter.fields)),
    ];
    parts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_a_sentence() {
        let table = [
            (Judgement::Sent, ""),
            (Judgement::NotSelected, "This event isn’t selected."),
            (Judgement::Filtered(Mismatch::From(Status::InTrial)), "It moved from In trial."),
            (Judgement::Filtered(Mismatch::NotAMove), "It isn’t a move, so it has no previous stage."),
            (Judgement::Filtered(Mismatch::To(Status::Lost)), "The stage is Lost."),
            (Judgement::Filtered(Mismatch::Channel), "The channel doesn’t match."),
            (Judgement::Filtered(Mismatch::Field("plan".to_owned())), "The field plan doesn’t match."),
            (Judgement::Erased, "Its payload was erased."),
        ];
        for (judgement, words) in table {
            assert_eq!(reason(&judgement), words);
        }
    }
}
