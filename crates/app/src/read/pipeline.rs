//! The board with its stages, and the moves between them.

use std::collections::HashMap;

use rapport_domain::exchange_rate::total::Rates;
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_store::account_list::AccountFilter;
use rapport_store::{Error, Query as _, Snapshot, history, stage_totals};

use crate::read::accounts::{AccountPage, Cursor, ListAccounts, Sort};
use crate::read::{Viewer, exchange_rate};

pub use rapport_store::recent::{NamedMove, moves};
pub use rapport_store::stage_totals::Stage;

/// The order of the accounts in a stage.
pub const BOARD_SORT: Sort = Sort::NEWEST;

pub struct Board {
    /// Every stage with some of its accounts.
    pub stages: Vec<(Stage, AccountPage)>,
    /// For the values of the stages.
    pub rates: Rates,
    /// When each of these accounts entered its stage.
    pub entered: HashMap<AccountId, Time>,
}

/// `place` says where a stage's accounts begin, and how many are read.
pub fn board(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    place: impl Fn(Status) -> (Option<Cursor>, i64),
) -> Result<Board, Error> {
    let stages = stage_totals::stages(snapshot)?;
    let rates = rates_of(snapshot, viewer, &stages)?;
    let with_accounts = |stage: Stage| {
        let (cursor, limit) = place(stage.status);
        let filter = AccountFilter { statuses: vec![stage.status], ..AccountFilter::default() };
        let list = ListAccounts { filter, sort: BOARD_SORT, cursor, limit, now: viewer.now };
        list.run(snapshot).map(|page| (stage, page))
    };
    let stages = stages.into_iter().map(with_accounts).collect::<Result<Vec<_>, _>>()?;
    let accounts: Vec<AccountId> =
        stages.iter().flat_map(|(_, page)| &page.items).map(|account| account.id).collect();
    let entered = history::entered(snapshot, &accounts)?.into_iter().collect();
    Ok(Board { stages, rates, entered })
}

/// The rates that the values of the stages are converted with.
pub(crate) fn rates_of(snapshot: &mut Snapshot, viewer: &Viewer, stages: &[Stage]) -> Result<Rates, Error> {
    let values = stages.iter().flat_map(|stage| &stage.values);
    exchange_rate::today(snapshot, viewer, values.map(|value| value.currency))
}
