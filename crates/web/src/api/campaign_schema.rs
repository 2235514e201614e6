//! Schemas of campaigns for the OpenAPI document only. The domain parses the actual members.

#![expect(dead_code, reason = "these types only describe the API and are never constructed")]

use utoipa::ToSchema;

use crate::api::schema::{Account, Status};

/// The purpose of a campaign. `acquisition` and `reactivation` exclude customers, and also accounts In trial unless
/// `include_trials` is true. `expansion` includes only customers, `announcement` everyone.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum CampaignGoal {
    Acquisition,
    Reactivation,
    Expansion,
    Announcement,
}

#[derive(ToSchema)]
pub struct CampaignCreate {
    #[schema(min_length = 1, max_length = 120, example = "Spring fair")]
    name: String,
    goal: CampaignGoal,
    /// Defaults to false.
    include_trials: Option<bool>,
    filters: Option<AccountFilters>,
}

#[derive(ToSchema)]
pub struct CampaignPatch {
    #[schema(min_length = 1, max_length = 120)]
    name: Option<String>,
    goal: Option<CampaignGoal>,
    include_trials: Option<bool>,
    /// Replaces all filters.
    filters: Option<AccountFilters>,
}

/// A campaign to preview before it is created.
#[derive(ToSchema)]
pub struct CampaignPreview {
    goal: CampaignGoal,
    include_trials: Option<bool>,
    filters: Option<AccountFilters>,
}

/// The filters of the account list. Accounts must match all of them.
#[derive(ToSchema)]
pub struct AccountFilters {
    /// Beginnings of words in the name, or the imported_id.
    q: Option<String>,
    /// One or more.
    status: Option<Vec<Status>>,
    /// One or more channel ids.
    channel: Option<Vec<String>>,
    imported_id: Option<String>,
    tracked: Option<bool>,
    overdue: Option<bool>,
    /// False for accounts never seen.
    seen: Option<bool>,
    #[schema(format = DateTime)]
    seen_before: Option<String>,
    #[schema(format = DateTime)]
    seen_after: Option<String>,
    /// False for accounts never contacted.
    contacted: Option<bool>,
    #[schema(format = DateTime)]
    contacted_before: Option<String>,
    #[schema(format = DateTime)]
    contacted_after: Option<String>,
    campaign_hold: Option<bool>,
    /// A condition for each key: a value, an array of values of which one must match, `{"exists": true}` or
    /// `{"begins_with": "a text"}`. Case is ignored. If the field is an array, one of its elements must match.
    #[schema(value_type = Option<Object>, example = json!({"plan": "pro", "country": ["de", "at"]}))]
    fields: Option<String>,
}

#[derive(ToSchema)]
pub struct CampaignMembers {
    items: Vec<Account>,
    /// Send it as `cursor` to get the next page. Null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
    count: i64,
    capped: bool,
    #[schema(value_type = Object, example = json!({"customers": 12, "do_not_contact": 3}))]
    excluded: String,
    excluded_capped: Vec<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rapport_domain::audience::Filter;
    use rapport_domain::campaign::Goal;
    use serde_json::{Value, json};

    #[test]
    fn enum_values_and_filters_match_the_domain() {
        let document = serde_json::to_value(crate::api::openapi::document()).unwrap();
        let schemas = &document["components"]["schemas"];
        let goals: Vec<&str> = Goal::ALL.map(Goal::as_str).to_vec();
        assert_eq!(schemas["CampaignGoal"]["enum"], json!(goals));
        let at = "2026-01-01";
        let channel = rapport_domain::id::ChannelId::from_bytes([1; 16]).to_string();
        let every = json!({
            "q": "x", "status": "lost", "channel": channel, "imported_id": "x", "tracked": true, "overdue": true,
            "seen": true, "seen_before": at, "seen_after": at, "contacted": true, "contacted_before": at,
            "contacted_after": at, "campaign_hold": true, "fields": {"a": 1},
        });
        let parsed = Filter::parse(every.as_object().unwrap(), "").unwrap().to_json();
        let read: BTreeSet<&String> = parsed.as_object().unwrap().keys().collect();
        let described: &Value = &schemas["AccountFilters"]["properties"];
        assert_eq!(read, described.as_object().unwrap().keys().collect::<BTreeSet<_>>());
    }
}
