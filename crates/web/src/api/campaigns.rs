//! Campaigns: create, change, preview and delete them, and list or export their members.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::campaign::{CreateCampaign, DeleteCampaign, PatchCampaign};
use rapport_app::export::RecordExport;
use rapport_app::read::accounts::{Cursor, Sort};
use rapport_app::read::campaign::{self, Counts, Part};
use rapport_app::{Answer, Viewer};
use rapport_domain::account::AccountView;
use rapport_domain::campaign::{Aim, Campaign, Draft, Goal, Patch};
use rapport_domain::id::CampaignId;
use rapport_domain::time::Time;
use rapport_store::Snapshot;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::conditional::{Conditions, versioned};
use crate::api::{Api, EXPORT, READ, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::shared::export;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'g';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_campaigns, create_campaign))
        .routes(routes!(preview_campaign))
        .routes(routes!(get_campaign, patch_campaign, delete_campaign))
        .routes(routes!(campaign_members))
        .routes(routes!(export_campaign))
}

/// A named goal with filters.
#[derive(Serialize, ToSchema)]
#[schema(as = Campaign)]
struct CampaignView {
    #[schema(value_type = String, example = "cmp_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: CampaignId,
    #[schema(example = "Spring fair")]
    name: String,
    #[schema(value_type = Goal)]
    goal: &'static str,
    include_trials: bool,
    /// Only the filters that are set.
    #[schema(value_type = requests::AccountFilters)]
    filters: Value,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// How many accounts are included, and how many match the filters but are excluded.
#[derive(Serialize, ToSchema)]
#[schema(as = CampaignCounts)]
struct CountsView {
    /// Included accounts, counted up to 10,000.
    count: i64,
    /// True if there are more than `count`.
    capped: bool,
    /// How many accounts match the filters but are excluded, by rule: `do_not_contact`, `campaign_hold`,
    /// `customers`, `trials`, `not_customers`. An account counts under the first rule that excludes it. Counted up
    /// to 10,000.
    #[schema(example = json!({"customers": 12, "do_not_contact": 3}))]
    excluded: BTreeMap<&'static str, i64>,
    /// The rules that exclude more accounts than `excluded` shows.
    #[schema(value_type = Vec<String>)]
    excluded_capped: Vec<&'static str>,
}

/// A campaign with its current number of accounts.
#[derive(Serialize, ToSchema)]
#[schema(as = CampaignDetail)]
struct CampaignDetail {
    #[serde(flatten)]
    campaign: CampaignView,
    #[serde(flatten)]
    counts: CountsView,
}

impl From<Campaign> for CampaignView {
    fn from(Campaign { id, name, aim, created_at, updated_at }: Campaign) -> Self {
        let Aim { goal, include_trials, filters } = aim;
        Self {
            id,
            name,
            goal: goal.as_str(),
            include_trials,
            filters: filters.to_json(),
            created_at,
            updated_at,
        }
    }
}

impl From<Counts> for CountsView {
    fn from(Counts { members, excluded }: Counts) -> Self {
        let capped = excluded.iter().filter(|(_, count)| count.capped).map(|(rule, _)| rule.as_str());
        Self {
            count: members.count,
            capped: members.capped,
            excluded_capped: capped.collect(),
            excluded: excluded.iter().map(|(rule, count)| (rule.as_str(), count.count)).collect(),
        }
    }
}

/// List campaigns
///
/// Newest first, without counts.
#[utoipa::path(
    get,
    path = "/api/campaigns/",
    tag = "Campaigns",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of campaigns.", body = Page<CampaignView>)),
    security(("token" = ["read"])),
)]
async fn list_campaigns(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(CampaignId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, READ, parameters.finish(), move |snapshot, _, ()| {
        campaign::list(snapshot, before, limit)
    });
    let page = found.await?.reply;
    let next = page.items.last().filter(|_| page.more);
    let next_cursor = next.map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items: Vec<CampaignView> = page.items.into_iter().map(CampaignView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Create a campaign
///
/// Its members are computed whenever you look, so there is nothing to keep up to date.
#[utoipa::path(
    post,
    path = "/api/campaigns/",
    tag = "Campaigns",
    request_body = requests::CampaignCreate,
    responses(
        (status = 201, description = "The campaign.", body = CampaignDetail),
        (status = 409, description = "Another campaign has this name."),
    ),
    security(("token" = ["work"])),
)]
async fn create_campaign(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, draft) = call.parse(Draft::parse);
    api.act_and_show(&caller, draft.map(CreateCampaign), |snapshot, viewer, created| {
        let counts = campaign::counts(snapshot, viewer, &created.aim)?;
        Ok(rendered(StatusCode::CREATED, created, counts))
    })
    .await
}

/// Preview a campaign
///
/// Counts the accounts that would be included, without saving anything.
#[utoipa::path(
    post,
    path = "/api/campaigns/preview/",
    tag = "Campaigns",
    request_body = requests::CampaignPreview,
    responses((status = 200, description = "How many accounts are included and excluded.", body = CountsView)),
    security(("token" = ["read"])),
)]
async fn preview_campaign(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, aim) = call.parse(Aim::parse);
    let found = api
        .read(&caller, READ, aim, |snapshot, viewer, aim| campaign::counts(snapshot, viewer, &aim))
        .await?;
    Ok(json::respond(StatusCode::OK, &CountsView::from(found.reply)))
}

/// Get a campaign
///
/// With the number of its members, and of the accounts that each rule excludes.
#[utoipa::path(
    get,
    path = "/api/campaigns/{id}/",
    tag = "Campaigns",
    params(("id" = String, Path, description = "The campaign's id.")),
    responses((status = 200, description = "The campaign.", body = CampaignDetail)),
    security(("token" = ["read"])),
)]
async fn get_campaign(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    conditions.answer(show(&api, &caller, id).await?)
}

/// Change a campaign
///
/// Only the fields you send are changed; `filters` is replaced as a whole.
#[utoipa::path(
    patch,
    path = "/api/campaigns/{id}/",
    tag = "Campaigns",
    params(("id" = String, Path, description = "The campaign's id.")),
    request_body = requests::CampaignPatch,
    responses(
        (status = 200, description = "The campaign.", body = CampaignDetail),
        (status = 409, description = "Another campaign has this name."),
    ),
    security(("token" = ["work"])),
)]
async fn patch_campaign(
    State(api): State<Api>,
    Id(id): Id<CampaignId>,
    conditions: Conditions,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, patch) = call.parse(Patch::parse);
    let command = id.and_then(|id| patch.map(|patch| (id, PatchCampaign { id, patch })));
    let patched = api.change(&caller, conditions, command, current).await?;
    Ok(versioned(show(&api, &caller, Ok(patched.id)).await?))
}

/// Delete a campaign
///
/// Its members aren't touched.
#[utoipa::path(
    delete,
    path = "/api/campaigns/{id}/",
    tag = "Campaigns",
    params(("id" = String, Path, description = "The campaign's id.")),
    responses((status = 204, description = "Deleted.")),
    security(("token" = ["work"])),
)]
async fn delete_campaign(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    api.change(&caller, conditions, id.map(|id| (id, DeleteCampaign(id))), current).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn show(api: &Api, caller: &Caller, id: Result<CampaignId, Problem>) -> Result<Rendered, Problem> {
    let found = api.read(caller, READ, id, campaign::one);
    let (found, counts) = found.await?.reply.ok_or_else(|| Problem::not_found("campaign"))?;
    Ok(rendered(StatusCode::OK, found, counts))
}

/// The campaign as `get_campaign` shows it.
fn current(
    snapshot: &mut Snapshot,
    viewer: &Viewer,
    id: CampaignId,
) -> Result<Option<Rendered>, rapport_store::Error> {
    let found = campaign::one(snapshot, viewer, id)?;
    Ok(found.map(|(found, counts)| rendered(StatusCode::OK, found, counts)))
}

fn rendered(status: StatusCode, found: Campaign, counts: Counts) -> Rendered {
    json::render(status, &CampaignDetail { campaign: found.into(), counts: counts.into() })
}

/// A page of a campaign's members, with the number of included and excluded accounts.
#[derive(Serialize, ToSchema)]
struct CampaignMembers<'a> {
    #[serde(flatten)]
    page: Page<AccountView<'a>>,
    #[serde(flatten)]
    counts: CountsView,
}

/// List a campaign's members
///
/// The accounts that are currently included, with the number of included and excluded accounts.
#[utoipa::path(
    get,
    path = "/api/campaigns/{id}/members/",
    tag = "Campaigns",
    params(
        ("id" = String, Path, description = "The campaign's id."),
        requests::AccountListParameters,
        requests::PageParameters,
    ),
    responses((status = 200, description = "A page of members.", body = CampaignMembers)),
    security(("token" = ["read"])),
)]
async fn campaign_members(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let sort = parameters.optional("sort", Sort::parse).unwrap_or_default();
    let cursor = parameters.cursor(|text| Cursor::parse(text, sort).ok());
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, move |snapshot, viewer, id| {
        campaign::members(snapshot, viewer, id, Part { sort, cursor, limit })
    });
    let Answer { reply, company, now } = found.await?;
    let (page, counts) = reply.ok_or_else(|| Problem::not_found("campaign"))?;
    let page = Page {
        items: page.items.iter().map(|account| account.view(&company.settings, now)).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    };
    Ok(json::respond(StatusCode::OK, &CampaignMembers { page, counts: counts.into() }))
}

/// Export a campaign's members
///
/// Returns CSV with the columns of the account export, oldest account first. Each account appears once. The audit log
/// records the export.
#[utoipa::path(
    get,
    path = "/api/campaigns/{id}/export/",
    tag = "Campaigns",
    params(("id" = String, Path, description = "The campaign's id.")),
    responses(
        (status = 200, description = "The members.", body = String, content_type = "text/csv"),
        (status = 422, description = "It takes no parameters."),
    ),
    security(("token" = ["export"])),
)]
async fn export_campaign(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let question = parameters.about(id);
    let found = api.read(&caller, EXPORT, question, |snapshot, viewer, id| {
        Ok((id, campaign::export(snapshot, viewer, id)?))
    });
    let Answer { reply: (id, reply), company, now } = found.await?;
    let (name, begun) = reply.ok_or_else(|| Problem::not_found("campaign"))?;
    let begun = Answer { reply: begun.into(), company, now };
    api.write(&caller, Ok(RecordExport::of_campaign(id))).await?;
    Ok(export::respond(api.app(), caller.access(), &format!("campaign {name}"), begun))
}
