//! The effect of other cadence settings: who would become overdue, and who no longer would. These are ranges
//! of the cadence's indexes, counted up to a bound.

use rapport_domain::caps;
use rapport_domain::company::Settings;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use crate::account_list::{self, CappedCount, Sql};
use crate::cadence_ranges::{Derived, Rows, Which, Window};
use crate::error::Error;
use crate::tx::Snapshot;

/// The difference between two settings, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Overdue only with the new settings.
    pub becoming: CappedCount,
    /// Overdue only with the old settings.
    pub ceasing: CappedCount,
}

pub fn difference(
    snapshot: &mut Snapshot,
    old: &Settings,
    new: &Settings,
    now: Time,
) -> Result<Difference, Error> {
    Ok(Difference {
        becoming: count_added(snapshot, old, new, now)?,
        ceasing: count_added(snapshot, new, old, now)?,
    })
}

/// How many accounts are overdue with `new` but not with `old`, up to `caps::ON_A_PAGE`.
fn count_added(
    snapshot: &mut Snapshot,
    old: &Settings,
    new: &Settings,
    now: Time,
) -> Result<CappedCount, Error> {
    let derived = Derived::of(new, now);
    let ranges = added(old, new, now);
    if ranges.is_empty() {
        return Ok(CappedCount { count: 0, capped: false });
    }
    let sql = sql(&derived, &ranges);
    let count = account_list::count(&sql, snapshot)?;
    Ok(CappedCount { count: count.min(caps::ON_A_PAGE), capped: count > caps::ON_A_PAGE })
}

pub(crate) fn sql<'a>(derived: &'a Derived, ranges: &[(Status, Rows, Window)]) -> Sql<'a> {
    let mut sql = Sql::default();
    derived.ids_in(&mut sql, ranges, Some(caps::ON_A_PAGE + 1));
    sql.limit(caps::ON_A_PAGE + 1);
    sql
}

/// The ranges of the accounts that are overdue with `new` but not with `old`; due dates are those of `new`.
///
/// A stage that wasn't tracked is included entirely. Of one that was, only accounts on the company's cadence
/// whose due date moved from after now to before; cadence overrides don't move.
pub(crate) fn added(old: &Settings, new: &Settings, now: Time) -> Vec<(Status, Rows, Window)> {
    let earlier_by = old.cadence_days - new.cadence_days;
    let moved = Window { after: Some(now.plus_days(-earlier_by)), until: Some(now) };
    let mut ranges = Vec::new();
    for status in new.tracked_stages.statuses() {
        for which in Which::REMINDABLE.iter().copied() {
            if !old.tracked_stages.contains(status) {
                ranges.extend([false, true].map(|own| (status, Rows { own, which }, Window::until(now))));
            } else if earlier_by > 0 {
                ranges.push((status, Rows { own: false, which }, moved));
            }
        }
    }
    ranges
}
