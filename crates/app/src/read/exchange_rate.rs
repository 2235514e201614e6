//! Exchange rates: the list of them, and those that totals are converted with.

use rapport_domain::exchange_rate::ExchangeRate;
use rapport_domain::exchange_rate::total::Rates;
use rapport_domain::money::Currency;
use rapport_store::page::Page;
use rapport_store::{Error, Snapshot, exchange_rate, stage_totals};

use crate::read::Viewer;

pub use rapport_store::exchange_rate::{Listed, Place, get};

/// The rates of these currencies to the default currency that are in force today.
pub fn today(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    currencies: impl IntoIterator<Item = Currency>,
) -> Result<Rates, Error> {
    exchange_rate::in_force(snapshot, viewer.settings().default_currency, currencies, viewer.today())
}

/// Which rates are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// The default currency if `None`.
    pub base: Option<Currency>,
    /// Every currency if `None`.
    pub currency: Option<Currency>,
    pub after: Option<Place>,
}

pub fn list(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    wanted: Wanted,
    limit: i64,
) -> Result<Page<ExchangeRate>, Error> {
    let Wanted { base, currency, after } = wanted;
    let base = base.unwrap_or(viewer.settings().default_currency);
    exchange_rate::list(snapshot, Listed { base, currency }, after, limit)
}

/// Everything the page of exchange rates shows.
pub struct RatesPage {
    pub rates: Page<ExchangeRate>,
    /// Those in force of the currencies that are listed.
    pub in_force: Rates,
    /// Currencies of accounts that aren't converted.
    pub missing: Vec<Currency>,
    /// Other default currencies that there are rates to.
    pub former: Vec<Currency>,
}

pub fn page(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    wanted: Wanted,
    limit: i64,
) -> Result<RatesPage, Error> {
    let default = viewer.settings().default_currency;
    let rates = list(snapshot, viewer, wanted, limit)?;
    let listed = rates.items.iter().map(|rate| rate.currency);
    let in_force = exchange_rate::in_force(snapshot, wanted.base.unwrap_or(default), listed, viewer.today())?;
    let mut used = in_use(snapshot)?;
    let known = today(snapshot, viewer, used.iter().copied())?;
    used.retain(|currency| *currency != default && known.of(*currency).is_none());
    let mut former = exchange_rate::bases(snapshot)?;
    former.retain(|base| *base != default);
    Ok(RatesPage { rates, in_force, missing: used, former })
}

/// The currencies of accounts with a value, in alphabetical order.
fn in_use(snapshot: &mut Snapshot) -> Result<Vec<Currency>, Error> {
    let stages = stage_totals::stages(snapshot)?;
    let mut used: Vec<Currency> =
        stages.iter().flat_map(|stage| &stage.values).map(|value| value.currency).collect();
    used.sort_unstable_by_key(|currency| currency.code());
    used.dedup();
    Ok(used)
}
