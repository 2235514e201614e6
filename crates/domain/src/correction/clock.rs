//! What a correction does to the cadence.
//!
//! The clock follows: it shows the latest contact that remains, logged or imported. An episode is named by the last
//! contact, so a deleted contact reopens the episode that it had closed. That one is announced at most once: if it was
//! announced before the contact closed it, it isn't announced again. The same holds for a client who was announced as
//! overdue and still is after the correction: nobody made contact since that reminder, so it stands.

use crate::cadence::Facts;
use crate::company::Settings;
use crate::time::Time;

/// When an entry counts as contact, before and after its correction. `None` if it doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    pub was: Option<Time>,
    pub becomes: Option<Time>,
}

/// The contacts that are left after a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The latest entry that counts as contact, with the corrected one.
    pub logged: Option<Time>,
    /// The last contact that an import named, which has no entry.
    pub imported: Option<Time>,
}

/// The last contact after a correction.
pub fn last_contact(current: Option<Time>, shift: Shift, left: Left) -> Option<Time> {
    let Shift { was, becomes } = shift;
    if was == becomes {
        return current;
    }
    if was.is_some() && was == current {
        return left.logged.max(left.imported);
    }
    // An earlier entry, or one that didn't count: only a later contact moves the clock.
    current.max(becomes)
}

/// The episode that runs after a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Episode {
    /// The clock didn't move.
    Unchanged,
    /// Another one, which may have been announced before. Its own record decides whether it still is.
    Own,
    /// Another one that counts as announced, since then.
    Announced(Time),
}

/// `announced_at` is when the episode before the correction was announced.
pub fn episode(
    before: &Facts,
    after: &Facts,
    announced_at: Option<Time>,
    settings: &Settings,
    now: Time,
) -> Episode {
    if before.last_contact_at == after.last_contact_at {
        return Episode::Unchanged;
    }
    let is_due = after.start().is_some_and(|start| now >= start.plus_days(after.interval(settings)));
    // A reminder from before the last contact is about another episode.
    let stands = announced_at.filter(|at| is_due && after.last_contact_at.is_none_or(|last| *at >= last));
    stands.map_or(Episode::Own, Episode::Announced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Status;

    const DAY: i64 = 86_400_000_000;

    fn at(day: i64) -> Time {
        Time::from_micros(day * DAY)
    }

    fn facts(last_contact: Option<i64>) -> Facts {
        Facts {
            status: Status::Customer,
            last_contact_at: last_contact.map(at),
            tracked_since: Some(at(-10)),
            cadence_override: None,
            snoozed_until: None,
        }
    }

    /// What happened, the clock before, the entry before and after, the latest contact that is left, the clock after.
    type Row = (&'static str, Option<i64>, (Option<i64>, Option<i64>), Option<i64>, Option<i64>);

    #[test]
    fn the_clock_shows_the_latest_contact_that_remains() {
        let table: [Row; 14] = [
            ("the last contact is deleted", Some(50), (Some(50), None), Some(3), Some(3)),
            ("the only contact is deleted", Some(50), (Some(50), None), None, None),
            ("one of two at the same time is deleted", Some(50), (Some(50), None), Some(50), Some(50)),
            ("an earlier contact is deleted", Some(50), (Some(3), None), Some(50), Some(50)),
            (
                "the last contact was earlier, but is still the last",
                Some(50),
                (Some(50), Some(40)),
                Some(40),
                Some(40),
            ),
            ("the last contact was before another one", Some(50), (Some(50), Some(1)), Some(3), Some(3)),
            ("the last contact was later", Some(50), (Some(50), Some(60)), Some(60), Some(60)),
            ("an earlier contact was really the last", Some(50), (Some(3), Some(60)), Some(60), Some(60)),
            (
                "an earlier contact was at another time, but earlier",
                Some(50),
                (Some(3), Some(4)),
                Some(50),
                Some(50),
            ),
            ("an entry's text is edited", Some(50), (Some(50), Some(50)), Some(50), Some(50)),
            ("a message that isn't contact is deleted", Some(50), (None, None), Some(50), Some(50)),
            ("a message becomes outbound", Some(50), (None, Some(60)), Some(60), Some(60)),
            ("a message becomes outbound, the first contact", None, (None, Some(7)), Some(7), Some(7)),
            ("a deleted contact is restored", Some(3), (None, Some(50)), Some(50), Some(50)),
        ];
        for (what, current, (was, becomes), latest, expected) in table {
            let shift = Shift { was: was.map(at), becomes: becomes.map(at) };
            let left = Left { logged: latest.map(at), imported: None };
            assert_eq!(last_contact(current.map(at), shift, left), expected.map(at), "{what}");
        }
    }

    #[test]
    fn a_contact_that_left_no_entry_is_not_forgotten() {
        // The clock was set by something else than a contact that can be corrected.
        let shift = Shift { was: Some(at(3)), becomes: None };
        let left = Left { logged: None, imported: None };
        assert_eq!(last_contact(Some(at(50)), shift, left), Some(at(50)));
    }

    #[test]
    fn the_clock_falls_back_to_an_imported_contact() {
        // What happened, the clock before, the entry before and after, what is left, and the clock after.
        let table = [
            ("the only entry is deleted", 50, (50, None), (None, Some(20)), Some(20)),
            ("an entry before the import is left", 50, (50, None), (Some(3), Some(20)), Some(20)),
            ("an entry after the import is left", 50, (50, None), (Some(30), Some(20)), Some(30)),
            ("the entry was before the import", 50, (50, Some(10)), (Some(10), Some(20)), Some(20)),
            ("the import is undone", 50, (50, None), (None, None), None),
            (
                "the imported contact is the last, an entry is deleted",
                20,
                (3, None),
                (None, Some(20)),
                Some(20),
            ),
            ("both at the same time, the entry is deleted", 20, (20, None), (None, Some(20)), Some(20)),
        ];
        for (what, current, (was, becomes), (logged, imported), expected) in table {
            let shift = Shift { was: Some(at(was)), becomes: becomes.map(at) };
            let left = Left { logged: logged.map(at), imported: imported.map(at) };
            assert_eq!(last_contact(Some(at(current)), shift, left), expected.map(at), "{what}");
        }
    }

    #[test]
    fn an_episode_is_announced_at_most_once() {
        // What happened, the clock before and after, when the episode before was announced, the day, and whether the
        // episode after counts as announced. `None`: the clock stays.
        let (own, announced) = (Some(false), Some(true));
        let table = [
            ("the clock stays", Some(0), Some(0), Some(42), 100, None),
            (
                "a deletion reopens an episode; its record says whether it was announced",
                Some(50),
                Some(0),
                None,
                51,
                own,
            ),
            ("a deletion reopens an episode that isn't due yet", Some(30), Some(0), None, 31, own),
            ("a deletion makes it never contacted again", Some(50), None, None, 51, own),
            (
                "announced, and still overdue since an earlier contact",
                Some(50),
                Some(0),
                Some(92),
                100,
                announced,
            ),
            (
                "announced, and still overdue since it became a client",
                Some(50),
                None,
                Some(92),
                100,
                announced,
            ),
            (
                "announced, and the contact was later, but it is overdue",
                Some(0),
                Some(1),
                Some(42),
                43,
                announced,
            ),
            ("announced, and the contact was so late that it isn't due", Some(0), Some(1), Some(42), 42, own),
            (
                "the contact was after the reminder, and is overdue again",
                Some(0),
                Some(43),
                Some(42),
                90,
                own,
            ),
            ("a restored contact closes the episode again", Some(0), Some(50), Some(42), 52, own),
            (
                "a restored contact was after the reminder, and is overdue",
                Some(0),
                Some(50),
                Some(42),
                92,
                own,
            ),
        ];
        for (what, before, after, announced, day, expected) in table {
            let (before, after, announced) = (facts(before), facts(after), announced.map(at));
            let found = episode(&before, &after, announced, &Settings::default(), at(day));
            let expected = match (expected, announced) {
                (None, _) => Episode::Unchanged,
                (Some(true), Some(announced)) => Episode::Announced(announced),
                (Some(_), _) => Episode::Own,
            };
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn the_accounts_own_clock_counts() {
        let never = Facts { tracked_since: None, ..facts(None) };
        let found = episode(&facts(Some(0)), &never, Some(at(42)), &Settings::default(), at(100));
        assert_eq!(found, Episode::Own, "without a clock nothing is due");
        let own = |last| Facts { cadence_override: Some(7), ..facts(Some(last)) };
        let on = |day| episode(&own(40), &own(41), Some(at(47)), &Settings::default(), at(day));
        assert_eq!((on(47), on(48)), (Episode::Own, Episode::Announced(at(47))));
    }
}
