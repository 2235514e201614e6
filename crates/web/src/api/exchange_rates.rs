//! Exchange rates to the company's default currency.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::Viewer;
use rapport_app::exchange_rate::{AddRate, ChangeRate, DeleteRate};
use rapport_app::read::exchange_rate::{self, Place, Wanted};
use rapport_domain::exchange_rate::{ExchangeRate, NewRate, RatePatch};
use rapport_domain::id::ExchangeRateId;
use rapport_domain::money::Currency;
use rapport_domain::time::{Day, Time};
use rapport_store::Snapshot;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::conditional::{Conditions, versioned};
use crate::api::{Api, READ, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor_bytes, write_cursor};

const LIST: u8 = b'x';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_exchange_rates, add_exchange_rate)).routes(routes!(
        get_exchange_rate,
        change_exchange_rate,
        delete_exchange_rate
    ))
}

/// What one unit of a currency is worth in the default currency, from a day on.
#[derive(Serialize, ToSchema)]
#[schema(as = ExchangeRate)]
struct RateView {
    #[schema(value_type = String, example = "rat_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: ExchangeRateId,
    /// An ISO 4217 code.
    #[schema(example = "CHF")]
    currency: &'static str,
    /// The default currency that the rate was added for. It is used only while this is the default currency.
    #[schema(example = "EUR")]
    base_currency: &'static str,
    /// The first day, in the company's time zone. The rate holds until the next one of the same currency.
    #[schema(format = Date, example = "2026-11-01")]
    valid_from: String,
    /// What one unit of `currency` is worth in `base_currency`: an exact decimal number.
    #[schema(example = "1.05")]
    rate: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<ExchangeRate> for RateView {
    fn from(rate: ExchangeRate) -> Self {
        Self {
            id: rate.id,
            currency: rate.currency.code(),
            base_currency: rate.base.code(),
            valid_from: rate.valid_from.to_string(),
            rate: rate.rate.text(),
            created_at: rate.created_at,
        }
    }
}

/// List exchange rates
///
/// Those to the default currency, unless `base_currency` says otherwise. By currency, the latest day first. The rate in
/// force on a day is the one with the latest `valid_from` that isn't after it; totals on pages use those in force today.
#[utoipa::path(
    get,
    path = "/api/exchange-rates/",
    tag = "Settings",
    params(requests::ExchangeRateParameters, requests::PageParameters),
    responses((status = 200, description = "A page of rates.", body = Page<RateView>)),
    security(("token" = ["read"])),
)]
async fn list_exchange_rates(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let base = parameters.optional("base_currency", Currency::parse);
    let currency = parameters.optional("currency", Currency::parse);
    let is_listed = |place: &Place| currency.is_none_or(|wanted| wanted == place.0);
    let after = parameters.cursor(|text| read_place(text).filter(is_listed));
    let limit = parameters.limit();
    let wanted = parameters.finish().map(|()| Wanted { base, currency, after });
    let found = api.read(&caller, READ, wanted, move |snapshot, viewer, wanted| {
        exchange_rate::list(snapshot, viewer, wanted, limit)
    });
    let page = found.await?.reply;
    let last = page.items.last().filter(|_| page.more);
    let next_cursor = last.map(|last| write_place((last.currency, last.valid_from)));
    let items: Vec<RateView> = page.items.into_iter().map(RateView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

fn write_place((currency, day): Place) -> String {
    write_cursor(LIST, &[currency.code().as_bytes(), &day.number().to_be_bytes()].concat())
}

fn read_place(text: &str) -> Option<Place> {
    let place = read_cursor_bytes(LIST, text)?;
    let (code, day) = place.split_first_chunk::<3>()?;
    let currency = Currency::parse(std::str::from_utf8(code).ok()?).ok()?;
    Some((currency, Day::from_number(i64::from_be_bytes(day.try_into().ok()?))))
}

/// Add an exchange rate
///
/// To the default currency. A currency has at most one rate per day; past and future days are fine. Totals on pages are
/// converted from then on.
#[utoipa::path(
    post,
    path = "/api/exchange-rates/",
    tag = "Settings",
    request_body = requests::ExchangeRateCreate,
    responses(
        (status = 201, description = "The rate.", body = RateView),
        (status = 409, description = "The currency has a rate from this day already."),
    ),
    security(("token" = ["settings"])),
)]
async fn add_exchange_rate(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, rate) = call.parse(NewRate::parse);
    let command = rate.map(|rate| AddRate { rate, base: None });
    api.act(&caller, command, |added| render(StatusCode::CREATED, added)).await
}

/// Get an exchange rate
///
/// Also one to another currency than the current default.
#[utoipa::path(
    get,
    path = "/api/exchange-rates/{id}/",
    tag = "Settings",
    params(("id" = String, Path, description = "The rate's id.")),
    responses((status = 200, description = "The rate.", body = RateView)),
    security(("token" = ["read"])),
)]
async fn get_exchange_rate(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ExchangeRateId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, id, current).await?.reply;
    conditions.answer(found.ok_or_else(|| Problem::not_found("exchange rate"))?)
}

/// Change an exchange rate
///
/// Only the fields you send are changed. The currency can't be; delete the rate and add another one.
#[utoipa::path(
    patch,
    path = "/api/exchange-rates/{id}/",
    tag = "Settings",
    params(("id" = String, Path, description = "The rate's id.")),
    request_body = requests::ExchangeRatePatch,
    responses(
        (status = 200, description = "The rate.", body = RateView),
        (status = 409, description = "The currency has another rate from this day."),
    ),
    security(("token" = ["settings"])),
)]
async fn change_exchange_rate(
    State(api): State<Api>,
    Id(id): Id<ExchangeRateId>,
    conditions: Conditions,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, patch) = call.parse(RatePatch::parse);
    let command = id.and_then(|id| patch.map(|patch| (id, ChangeRate { id, patch })));
    let changed = api.change(&caller, conditions, command, current).await?;
    Ok(versioned(render(StatusCode::OK, changed)))
}

/// Delete an exchange rate
///
/// The rate before it, if there is one, is in force again.
#[utoipa::path(
    delete,
    path = "/api/exchange-rates/{id}/",
    tag = "Settings",
    params(("id" = String, Path, description = "The rate's id.")),
    responses((status = 204, description = "Deleted.")),
    security(("token" = ["settings"])),
)]
async fn delete_exchange_rate(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ExchangeRateId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    api.change(&caller, conditions, id.map(|id| (id, DeleteRate(id))), current).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// As a GET shows it.
fn current(
    snapshot: &mut Snapshot,
    _: &Viewer,
    id: ExchangeRateId,
) -> Result<Option<Rendered>, rapport_store::Error> {
    Ok(exchange_rate::get(snapshot, id)?.map(|found| render(StatusCode::OK, found)))
}

fn render(status: StatusCode, rate: ExchangeRate) -> Rendered {
    json::render(status, &RateView::from(rate))
}
