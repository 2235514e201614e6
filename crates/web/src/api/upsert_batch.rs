//! Many upserts in one request: one result for each account.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use rapport_app::Error;
use rapport_app::upsert::{Upserted, foreign_project};
use rapport_app::upsert_batch::UpsertBatch;
use rapport_domain::activity::BatchError;
use rapport_domain::invalid::Invalid;
use rapport_domain::upsert_batch::{Batch, parse};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller};
use crate::api::upsert::{UpsertReply, faulty, status_of};
use crate::api::{Api, WORK, requests};
use crate::edge::auth::Scheme;
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(upsert_batch))
}

/// What was done with a batch of upserts.
#[derive(Serialize, ToSchema)]
struct UpsertBatchReply<'a> {
    /// The number of accounts that you sent.
    received: usize,
    succeeded: usize,
    failed: usize,
    /// One for each account, in the order of the request.
    results: Vec<UpsertResult<'a>>,
}

/// What was done with one account of a batch: either `reply` or `error`.
#[derive(Serialize, ToSchema)]
struct UpsertResult<'a> {
    /// The account's index in the request.
    index: usize,
    /// The status that a request for this account alone would have had.
    #[schema(example = 201)]
    status: u16,
    /// If the account was created or changed: what a request for this account alone would have returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<UpsertReply<'a>>,
    /// If the account was refused: why. Pointers lead into the request, such as `/accounts/3/status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
}

/// Create or change many accounts by their external record ids
///
/// Up to 500 accounts, each as in a single upsert, with the same rules and the same reply. Every account has a result of
/// its own: one that is refused doesn't affect the others. Accounts are applied in order, so a later one with the same
/// `imported_id` changes what an earlier one made. All accepted accounts are stored together; if the response isn't
/// 200, nothing was stored. `project` and the policies apply to every account that has none of its own. The body can be
/// up to 1 MiB, and be compressed (`Content-Encoding: gzip`). A batch counts as one request in the rate limit.
#[utoipa::path(
    post,
    path = "/api/accounts/upsert-batch/",
    tag = "Upsert and ingest",
    request_body = requests::UpsertBatchRequest,
    responses(
        (status = 200, description = "Each account has a result, in order.", body = UpsertBatchReply),
        (status = 403, description = "`project` is not the token's company, or the token only reads."),
        (status = 413, description = "More than 500 accounts, or over 1 MiB."),
    ),
    security(("token" = ["work"])),
)]
async fn upsert_batch(State(api): State<Api>, Call { caller, body }: Call) -> Result<Response, Problem> {
    let (Batch { project, accounts }, bytes) = match body.map(|object| (parse(&object.members), object)) {
        Ok((Ok(batch), object)) => (batch, object.bytes),
        Ok((Err(BatchError::Invalid(invalid)), object)) => {
            return Err(faulty(&api, &caller, invalid, &object).await);
        }
        Ok((Err(BatchError::TooLarge { received }), _)) => {
            return Err(verified(&api, &caller, Problem::too_many_accounts(received)).await);
        }
        Err(problem) => return Err(verified(&api, &caller, problem).await),
    };
    // Those that can't be parsed keep their place among the answers.
    let mut refused: Vec<Option<Invalid>> = Vec::with_capacity(accounts.len());
    let mut valid = Vec::with_capacity(accounts.len());
    for account in accounts {
        refused.push(account.map(|account| valid.push(account)).err());
    }
    let scheme = caller.scheme;
    if valid.is_empty() {
        let company = api.verify(&caller, WORK).await?;
        if project != company.slug.as_str() {
            return Err(Problem::of(foreign_project(), scheme));
        }
        return Ok(render(in_order(&refused, Vec::new()), scheme).into_response());
    }
    let command = UpsertBatch { project, accounts: valid, bytes };
    api.act(&caller, Ok(command), move |answers| render(in_order(&refused, answers), scheme)).await
}

/// The answers, with the accounts that can't be parsed in their places.
fn in_order(
    refused: &[Option<Invalid>],
    answers: Vec<Result<Upserted, Error>>,
) -> Vec<Result<Upserted, Error>> {
    let mut answers = answers.into_iter();
    let answer = |refused: &Option<Invalid>| match refused {
        Some(invalid) => Err(invalid.clone().into()),
        None => answers.next().unwrap_or_else(|| Err(Error::Internal("no answer".to_owned()))),
    };
    refused.iter().map(answer).collect()
}

/// Errors are reported after the caller is verified.
async fn verified(api: &Api, caller: &Caller, problem: Problem) -> Problem {
    api.verify(caller, WORK).await.err().unwrap_or(problem)
}

fn render(answers: Vec<Result<Upserted, Error>>, scheme: Scheme) -> Rendered {
    let received = answers.len();
    // The replies borrow from the answers.
    let mut stored = Vec::with_capacity(received);
    let mut refused = Vec::new();
    for (index, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(upserted) => stored.push((index, upserted)),
            Err(error) => refused.push((index, Problem::of(within(error, index), scheme))),
        }
    }
    let (succeeded, failed) = (stored.len(), refused.len());
    let replies = stored.iter().map(|(index, upserted)| UpsertResult {
        index: *index,
        status: status_of(upserted).as_u16(),
        reply: Some(UpsertReply::of(upserted)),
        error: None,
    });
    let errors = refused.into_iter().map(|(index, problem)| UpsertResult {
        index,
        status: problem.status().as_u16(),
        reply: None,
        error: Some(problem),
    });
    let mut results: Vec<UpsertResult> = replies.chain(errors).collect();
    results.sort_unstable_by_key(|result| result.index);
    json::render(StatusCode::OK, &UpsertBatchReply { received, succeeded, failed, results })
}

/// The error of one account, with pointers into the whole request.
fn within(error: Error, index: usize) -> Error {
    match error {
        Error::Invalid(invalid) => Error::Invalid(invalid.under(&format!("/accounts/{index}"))),
        other => other,
    }
}
