//! The board with its stages, and the moves between them.

use rapport_domain::pipeline::Status;
use rapport_store::account_list::AccountFilter;
use rapport_store::{Error, Query as _, Snapshot, stage_totals};

use crate::read::Viewer;
use crate::read::accounts::{AccountPage, Cursor, ListAccounts, Sort};

pub use rapport_store::recent::{NamedMove, moves};
pub use rapport_store::stage_totals::Stage;

/// The order of the accounts in a stage.
pub const BOARD_SORT: Sort = Sort::Newest;

/// Every stage with some of its accounts. `place` says where a stage's accounts begin, and how many are read.
pub fn board(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    place: impl Fn(Status) -> (Option<Cursor>, i64),
) -> Result<Vec<(Stage, AccountPage)>, Error> {
    let stages = stage_totals::stages(snapshot)?;
    let with_accounts = |stage: Stage| {
        let (cursor, limit) = place(stage.status);
        let filter = AccountFilter { statuses: vec![stage.status], ..AccountFilter::default() };
        let list = ListAccounts { filter, sort: BOARD_SORT, cursor, limit, now: viewer.now };
        list.run(snapshot).map(|page| (stage, page))
    };
    stages.into_iter().map(with_accounts).collect()
}
