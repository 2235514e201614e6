//! The list of accounts in the order of their changes, which can be followed with a cursor.

use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::feed::{AccountsAfter, accounts, settled};
use rapport_domain::account::AccountView;
use rapport_domain::invalid::Fault;
use rapport_domain::tombstone::TombstoneView;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::call::Caller;
use crate::api::following::Cursor;
use crate::api::{Api, READ};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::parameters::Parameters;

/// The value of `sort` that asks for this list.
pub const SORT: &str = "updated_at";
const LIST: u8 = b'u';

/// One page of a list.
#[derive(Serialize, ToSchema)]
#[schema(as = Page_Account)]
pub struct AccountList<'a> {
    pub items: Vec<AccountView<'a>>,
    /// Send it as `cursor` to get the next page. Null on the last page, but never with `sort=updated_at`.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
    /// With `sort=updated_at`: whether there are further changes already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub has_more: Option<bool>,
    /// With `deleted=true`: accounts that were deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub deleted: Option<Vec<TombstoneView<'a>>>,
}

/// Whether a request is for this list and not for a sorted one.
pub fn are_asked_for(parameters: &Parameters) -> bool {
    match parameters.given("sort") {
        Some(sort) => sort == SORT,
        None => parameters.given("updated_after").is_some() || parameters.given("deleted").is_some(),
    }
}

pub async fn respond(api: &Api, caller: &Caller, mut parameters: Parameters) -> Result<Response, Problem> {
    let cursor = Cursor::of(&mut parameters, LIST, api.app().now());
    parameters.optional("sort", |_| Ok(()));
    let asked = AccountsAfter {
        place: cursor.map(|cursor| cursor.place),
        updated_after: parameters.time("updated_after"),
        deleted: parameters.boolean("deleted").unwrap_or(false),
        limit: parameters.limit(),
    };
    let question = parameters.finish();
    let settled = api.read(caller, READ, question, |snapshot, _, ()| settled(snapshot)).await?.reply;
    let found = api.read(caller, READ, Ok(asked), move |snapshot, _, asked| {
        let has_deleted = asked.deleted;
        Ok((accounts(snapshot, &asked, settled)?, has_deleted))
    });
    let found = found.await?;
    let ((page, has_deleted), now) = (found.reply, found.now);
    // Deletions from before the first page don't concern a reader. Later ones do, also those from before the last page.
    let begun = cursor.map_or(now, |cursor| cursor.complete_at);
    let next = Cursor { place: page.next, complete_at: if page.more { begun } else { now } };
    let settings = &found.company.settings;
    let list = AccountList {
        items: page.accounts.iter().map(|account| account.view(settings, now)).collect(),
        next_cursor: Some(next.write(LIST)),
        has_more: Some(page.more),
        deleted: has_deleted.then(|| page.deleted.iter().map(|tombstone| tombstone.view()).collect()),
    };
    Ok(json::respond(StatusCode::OK, &list))
}

/// Refuses parameters that only this list has.
pub fn refuse_others(parameters: &mut Parameters) {
    for name in ["updated_after", "deleted"] {
        let only = Fault::new("only_with_sort", format!("can only be used with sort={SORT}"));
        parameters.optional(name, |_| Err::<(), _>(only));
    }
}
