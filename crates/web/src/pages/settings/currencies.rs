//! Exchange rates to the default currency: the list with a form to add one, and a page to change one.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::exchange_rate::{AddRate, ChangeRate, DeleteRate};
use rapport_app::read::exchange_rate::{self, Place, RatesPage, Wanted};
use rapport_domain::exchange_rate::{ExchangeRate, NewRate, RatePatch};
use rapport_domain::id::ExchangeRateId;
use rapport_domain::money::Currency;
use rapport_domain::time::Day;

use super::{CURRENCIES, ROWS, back_to, tabbed, typed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::words::when::full_date;
use crate::pages::words::worth::rate as equation;
use crate::pages::{Pages, SETTINGS};

const PATH: &str = "/settings/currencies";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<CurrenciesPage, ()>).post(add))
        .route("/settings/currencies/{id}", get(show::<RatePage, ExchangeRateId>).post(change))
        .route("/settings/currencies/{id}/delete", post(delete).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/currencies.html")]
struct CurrenciesPage {
    frame: Frame,
    rows: Vec<Row>,
    /// The address of the next rows.
    next: Option<String>,
    /// What the rates are rates to. The default currency, unless others are asked for.
    base: Currency,
    /// Currencies of accounts that aren't converted.
    missing: Vec<Currency>,
    /// Other default currencies that there are rates to.
    former: Vec<Currency>,
    currencies: &'static [&'static str],
    draft: Draft,
}
framed!("settings": CurrenciesPage, RatePage);
tabbed!("currencies": CurrenciesPage, RatePage);

impl CurrenciesPage {
    fn default_currency(&self) -> Currency {
        self.frame.company.settings.default_currency
    }

    fn is_default(&self) -> bool {
        self.base == self.default_currency()
    }

    /// Default currencies of other times whose rates aren't listed here.
    fn others(&self) -> Vec<&'static str> {
        self.former.iter().filter(|former| **former != self.base).map(|former| former.code()).collect()
    }

    fn hint(&self) -> String {
        format!("What one unit is worth in {}.", self.default_currency().code())
    }
}

struct Row {
    rate: ExchangeRate,
    state: State,
}

impl Row {
    fn new(rate: ExchangeRate, in_force: Option<&ExchangeRate>, today: Day) -> Self {
        let state = match in_force {
            _ if rate.valid_from > today => State::Upcoming,
            Some(current) if current.id == rate.id => State::InForce,
            _ => State::Past,
        };
        Self { rate, state }
    }

    fn valid_from(&self) -> String {
        full_date(self.rate.valid_from.date())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InForce,
    Upcoming,
    Past,
}

impl<I: Sync> Load<I> for CurrenciesPage {
    async fn load(visit: &Visit<I>) -> Result<Self, Refusal> {
        let (base, after) = (currency(&visit.query, "base"), place(&visit.query));
        let adding = currency(&visit.query, "add").map_or("", Currency::code).to_owned();
        let limit = i64::try_from(ROWS).unwrap_or(i64::MAX);
        let wanted = Wanted { base, currency: None, after };
        let found = visit
            .read(SETTINGS, move |snapshot, viewer| exchange_rate::page(snapshot, viewer, wanted, limit));
        let Shown { frame, reply: RatesPage { rates, in_force, missing, former } } = found.await?;
        let (base, today) = (in_force.base(), frame.now.day_in(frame.zone()));
        let last = rates.items.last().filter(|_| rates.more);
        let next = last.map(|last| after_address(base, last));
        let row = |rate: ExchangeRate| Row::new(rate, in_force.of(rate.currency), today);
        let rows = rates.items.into_iter().map(row).collect();
        let draft = Draft::new([("currency", adding), ("valid_from", today.to_string())]);
        Ok(Self { frame, rows, next, base, missing, former, currencies: &CURRENCIES, draft })
    }
}

/// A currency in a query or a form, if it is one.
fn currency(form: &Form, name: &str) -> Option<Currency> {
    form.given(name).and_then(|code| Currency::parse(code).ok())
}

/// Where the previous page ended. An invalid place leads to the beginning.
fn place(query: &Form) -> Option<Place> {
    let day = query.given("before")?.parse().ok()?;
    Some((currency(query, "after")?, Day::of(day)))
}

fn after_address(base: Currency, last: &ExchangeRate) -> String {
    let ExchangeRate { currency, valid_from, .. } = last;
    format!("{PATH}?base={}&after={}&before={valid_from}", base.code(), currency.code())
}

async fn add(action: Action) -> Result<Response, Refusal> {
    let base = currency(&action.form, "base");
    let rate = NewRate::parse(&typed(&action.form, &["currency", "valid_from", "rate"]));
    let command = rate.map(|rate| AddRate { rate, base });
    let added = action.run(command, |page: &mut CurrenciesPage, draft| page.draft = draft).await?;
    action.done(&list_of(&added), format!("Rate added: {}.", described(&added)))
}

/// A rate to change.
#[derive(Template)]
#[template(path = "settings/rate.html")]
struct RatePage {
    frame: Frame,
    rate: ExchangeRate,
    draft: Draft,
}

impl RatePage {
    fn hint(&self) -> String {
        format!("What 1 {} is worth in {}.", self.rate.currency.code(), self.rate.base.code())
    }
}

impl Load<ExchangeRateId> for RatePage {
    async fn load(visit: &Visit<ExchangeRateId>) -> Result<Self, Refusal> {
        let id = visit.id;
        let found = visit.read(SETTINGS, move |snapshot, _| exchange_rate::get(snapshot, id));
        let Shown { frame, reply } = found.await?;
        let rate = reply.ok_or_else(|| Refusal::not_found("exchange rate"))?;
        let draft = Draft::new([("valid_from", rate.valid_from.to_string()), ("rate", rate.rate.text())]);
        Ok(Self { frame, rate, draft })
    }
}

async fn change(action: Action<ExchangeRateId>) -> Result<Response, Refusal> {
    let patch = RatePatch::parse(&typed(&action.form, &["valid_from", "rate"]));
    let command = patch.map(|patch| ChangeRate { id: action.id, patch });
    let changed = action.run(command, |page: &mut RatePage, draft| page.draft = draft).await?;
    action.done(&list_of(&changed), format!("Rate saved: {}.", described(&changed)))
}

async fn delete(action: Action<ExchangeRateId>) -> Result<Response, Refusal> {
    let deleted = action.act::<CurrenciesPage, _>(DeleteRate(action.id)).await?;
    let ExchangeRate { base, currency, valid_from, rate, .. } = deleted;
    let back = [
        ("currency", currency.code().to_owned()),
        ("valid_from", valid_from.to_string()),
        ("rate", rate.text()),
        ("base", base.code().to_owned()),
    ];
    let back = back.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let flash = Flash::good(format!("Rate deleted: {}.", described(&deleted)));
    action.done(&list_of(&deleted), flash.undo(PATH, back))
}

/// The list that a rate is in.
fn list_of(rate: &ExchangeRate) -> String {
    format!("{PATH}?base={}", rate.base.code())
}

fn described(rate: &ExchangeRate) -> String {
    format!("{} from {} on", equation(rate), full_date(rate.valid_from.date()))
}
