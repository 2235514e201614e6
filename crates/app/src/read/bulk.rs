//! What a change of many accounts would do to each of them.

use rapport_domain::account::Account;
use rapport_domain::bulk::{BulkChange, Effect};
use rapport_domain::id::AccountId;
use rapport_store::{Error, Snapshot, account, channel};

use crate::read::Viewer;

/// What a change would do.
pub struct Preview {
    /// Each account, and what would become of it, in the order in which they were asked for.
    pub lines: Vec<(Account, Effect)>,
    /// Accounts that were deleted in the meantime.
    pub missing: usize,
}

/// `None` if no active promo code matches.
pub fn preview(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    change: &BulkChange,
) -> Result<Option<Preview>, Error> {
    let attribution = match &change.promo_code {
        Some(code) => match channel::attributions(snapshot, &[code.folded()])?.pop() {
            Some((_, attribution)) => Some(attribution),
            None => return Ok(None),
        },
        None => None,
    };
    let found = accounts(snapshot, &change.accounts)?;
    let missing = change.accounts.len() - found.len();
    let settings = viewer.settings();
    let line = |account: Account| {
        let effect = change.effect(&account, attribution.as_ref(), settings, viewer.now);
        (account, effect)
    };
    Ok(Some(Preview { lines: found.into_iter().map(line).collect(), missing }))
}

/// The accounts that exist, in the order in which they were asked for.
pub fn accounts(snapshot: &mut Snapshot, ids: &[AccountId]) -> Result<Vec<Account>, Error> {
    account::some(snapshot, ids)
}
