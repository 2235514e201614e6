//! Exchange rates to the company's default currency.
//!
//! Every change locks the company, so that no two rates of one day are added at once and the default currency doesn't
//! change meanwhile.

use rapport_domain::audit::Action;
use rapport_domain::exchange_rate::{ExchangeRate, NewRate, RatePatch};
use rapport_domain::id::ExchangeRateId;
use rapport_domain::money::Currency;
use rapport_domain::right::Right;
use rapport_store::{Tx, company, exchange_rate};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

const NEEDS: Needs = Needs::Right(Right::Settings);

pub struct AddRate {
    pub rate: NewRate,
    /// The currency that it is a rate to, as when a deleted one is restored. Else the default currency.
    pub base: Option<Currency>,
}

impl Command for AddRate {
    type Reply = ExchangeRate;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ExchangeRate, Error> {
        let company = company::lock(tx)?.ok_or(Error::NotFound("company"))?;
        let base = self.base.unwrap_or(company.settings.default_currency);
        self.rate.refuse_base(base)?;
        let NewRate { currency, valid_from, rate } = self.rate;
        let added = ExchangeRate { id: cx.id(), base, currency, valid_from, rate, created_at: cx.now };
        refuse_taken(tx, &added)?;
        exchange_rate::insert(tx, &added)?;
        record(tx, cx, Action::ExchangeRateCreated, added.id, &shown(&added))?;
        Ok(added)
    }
}

/// Corrects the day or the rate. Totals follow.
pub struct ChangeRate {
    pub id: ExchangeRateId,
    pub patch: RatePatch,
}

impl Command for ChangeRate {
    type Reply = ExchangeRate;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ExchangeRate, Error> {
        let found = lock(tx, self.id)?;
        let changed = self.patch.apply(&found);
        if changed == found {
            return Ok(found);
        }
        refuse_taken(tx, &changed)?;
        exchange_rate::update(tx, &changed)?;
        let mut detail = audit::changes(&shown(&found), &shown(&changed));
        // Says which rate it is.
        detail["currency"] = found.currency.code().into();
        record(tx, cx, Action::ExchangeRateChanged, self.id, &detail)?;
        Ok(changed)
    }
}

pub struct DeleteRate(pub ExchangeRateId);

impl Command for DeleteRate {
    type Reply = ExchangeRate;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ExchangeRate, Error> {
        let found = lock(tx, self.0)?;
        exchange_rate::delete(tx, self.0)?;
        record(tx, cx, Action::ExchangeRateDeleted, self.0, &shown(&found))?;
        Ok(found)
    }
}

fn lock(tx: &mut Tx, id: ExchangeRateId) -> Result<ExchangeRate, Error> {
    company::lock(tx)?;
    exchange_rate::get(tx, id)?.ok_or(Error::NotFound("exchange rate"))
}

/// A currency has one rate per day.
fn refuse_taken(tx: &mut Tx, rate: &ExchangeRate) -> Result<(), Error> {
    let known = exchange_rate::on_day(tx, rate.base, rate.currency, rate.valid_from)?;
    if known.is_none_or(|known| known == rate.id) {
        return Ok(());
    }
    Err(Error::conflict("rate_taken", "this currency already has a rate that is valid from this day"))
}

fn record(
    tx: &mut Tx,
    cx: &Context,
    action: Action,
    id: ExchangeRateId,
    detail: &Value,
) -> Result<(), rapport_store::Error> {
    audit::record(tx, cx, action, Some(id.to_string()), detail)
}

fn shown(rate: &ExchangeRate) -> Value {
    json!({
        "currency": rate.currency.code(),
        "base_currency": rate.base.code(),
        "valid_from": rate.valid_from.to_string(),
        "rate": rate.rate.text(),
    })
}
