//! Accounts to export, read page by page.

use rapport_domain::audience::Filter;
use rapport_domain::time::Time;
use rapport_store::{Error, Query as _, Snapshot, account_field};

use crate::read::accounts::{AccountPage, Cursor, ListAccounts, Sort, nothing};
use crate::read::{MAX_LIMIT, Viewer};

/// How many custom fields an export names.
const FIELDS: i64 = 500;

/// Which accounts an export has, and in which order.
#[derive(Debug, Clone)]
pub struct Extent {
    filter: Filter,
    sort: Sort,
    /// When the export began, which filters by time refer to on every page.
    pub now: Time,
}

impl Extent {
    /// Lists by id, which never changes, so that each account appears once even if it is edited during the export.
    pub fn new(viewer: &Viewer, filter: Filter, newest_first: bool) -> Self {
        let sort = if newest_first { Sort::NEWEST } else { Sort::OLDEST };
        Self { filter, sort, now: viewer.now }
    }

    pub fn page(&self, snapshot: &mut Snapshot, cursor: Option<Cursor>) -> Result<AccountPage, Error> {
        let Self { filter, sort, now } = self.clone();
        ListAccounts { filter, sort, cursor, limit: MAX_LIMIT, now }.run(snapshot)
    }
}

/// The beginning of an export.
#[derive(Debug, Clone)]
pub struct Begun {
    pub extent: Extent,
    /// The custom fields in use.
    pub fields: Vec<String>,
    pub page: AccountPage,
}

/// Begins an export, oldest account first. Without a filter it has no rows.
pub fn begin(snapshot: &mut Snapshot, viewer: &Viewer, filter: Option<Filter>) -> Result<Begun, Error> {
    let is_empty = filter.is_none();
    let extent = Extent::new(viewer, filter.unwrap_or_default(), false);
    Ok(Begun {
        fields: account_field::names(snapshot, None, FIELDS)?.items,
        page: if is_empty { nothing() } else { extent.page(snapshot, None)? },
        extent,
    })
}
