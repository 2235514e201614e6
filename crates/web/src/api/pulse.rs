//! The Pulse card's figures: first and last seen, activity over 90 days, the most-used features.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::pulse::{self, FeatureUse, Figures};
use rapport_domain::activity::PULSE_DAYS;
use rapport_domain::id::AccountId;
use rapport_domain::time::{Day, Time};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id};
use crate::api::{Api, READ};
use crate::edge::json;
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(account_pulse))
}

#[derive(Serialize, ToSchema)]
struct Pulse {
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    first_seen_at: Option<Time>,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    last_seen_at: Option<Time>,
    /// The last 90 days, oldest first, ending today in the company's time zone. Days without activity count 0.
    days: Vec<PulseDay>,
    /// The 20 most used features over the account's lifetime.
    features: Vec<PulseFeature>,
}

#[derive(Serialize, ToSchema)]
struct PulseDay {
    #[schema(format = Date, example = "2026-05-12")]
    date: String,
    count: i64,
}

#[derive(Serialize, ToSchema)]
struct PulseFeature {
    #[schema(example = "reports.export")]
    feature: String,
    count: i64,
    #[schema(value_type = String, format = DateTime)]
    last_used_at: Time,
}

/// Get an account's pulse
///
/// When it was seen, how often on each of the last 90 days, and the features that it uses most.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/pulse/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.")),
    responses((status = 200, description = "The figures.", body = Pulse)),
    security(("token" = ["read"])),
)]
async fn account_pulse(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, id, pulse::figures);
    let figures = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    Ok(json::respond(StatusCode::OK, &Pulse::from(figures)))
}

impl From<Figures> for Pulse {
    fn from(Figures { today, seen, days, features }: Figures) -> Self {
        let counts: HashMap<Day, i64> = days.into_iter().collect();
        let days = (0..PULSE_DAYS).rev().map(|back| today.minus_days(back));
        Self {
            first_seen_at: seen.map(|(first, _)| first),
            last_seen_at: seen.map(|(_, last)| last),
            days: days
                .map(|day| PulseDay { date: day.to_string(), count: counts.get(&day).copied().unwrap_or(0) })
                .collect(),
            features: features
                .into_iter()
                .map(|FeatureUse { feature, count, last_used_at }| PulseFeature {
                    feature,
                    count,
                    last_used_at,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_zero_filled_oldest_first_and_end_today() {
        let today = Day::from_number(20_000);
        let days = vec![(today.minus_days(89), 3), (today, 5)];
        let pulse = Pulse::from(Figures { today, seen: None, days, features: Vec::new() });
        assert_eq!(pulse.days.len(), 90);
        assert_eq!((pulse.days[0].count, pulse.days[1].count, pulse.days[89].count), (3, 0, 5));
        assert_eq!((pulse.days[0].date.as_str(), pulse.days[89].date.as_str()), ("2024-07-07", "2024-10-04"));
    }
}
