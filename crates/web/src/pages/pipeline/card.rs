//! A card of the board: what matters about an account in its stage.

use rapport_domain::account::Account;
use rapport_domain::cadence::Due;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use crate::pages::kit::frame::Frame;
use crate::pages::words::number::counted;
use crate::pages::words::when::{When, date};

pub struct Card {
    pub account: Account,
    pub due: Due,
    /// How long the account has been in its stage, and since when.
    pub in_stage: String,
    pub since: String,
    pub last_contact: Option<When>,
    /// What the product reported, in a stage in which it is used.
    pub seen: Option<Seen>,
}

/// When an account was last seen in the product.
pub enum Seen {
    At(When),
    Never,
}

impl Card {
    /// An account that entered its stage then. Without a record of that, it was there from the beginning.
    pub fn new(account: Account, since: Option<Time>, frame: &Frame) -> Self {
        let since = since.unwrap_or(account.created_at);
        let seen = || account.last_seen_at.map_or(Seen::Never, |at| Seen::At(frame.when(&at)));
        Self {
            due: account.due(&frame.company.settings, frame.now),
            in_stage: in_stage(frame.now.day_in(frame.zone()).number() - since.day_in(frame.zone()).number()),
            since: date(since.day_in(frame.zone()).date()),
            last_contact: account.last_contact_at.map(|at| frame.when(&at)),
            seen: uses_the_product(account.status).then(seen),
            account,
        }
    }

    pub fn days_overdue(&self) -> String {
        counted(self.due.days_overdue, "day", "days")
    }
}

/// Before a trial nobody has used the product yet, and afterwards it no longer matters.
const fn uses_the_product(status: Status) -> bool {
    matches!(status, Status::InTrial | Status::Customer)
}

/// `3 days in stage`. A move that happened in another time zone may be ahead by a day.
fn in_stage(days: i64) -> String {
    if days <= 0 { "new in stage".to_owned() } else { format!("{} in stage", counted(days, "day", "days")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_a_stage_is_told_in_days() {
        let table = [
            (-1, "new in stage"),
            (0, "new in stage"),
            (1, "1 day in stage"),
            (2, "2 days in stage"),
            (1_200, "1,200 days in stage"),
        ];
        for (days, expected) in table {
            assert_eq!(in_stage(days), expected);
        }
    }
}
