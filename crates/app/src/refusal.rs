//! Requests that were refused because the caller's role isn't enough: each in the log, and some in the audit log.

use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::right::Right;
use rapport_store::Tx;
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::origin::Origin;
use crate::repeats::Repeated;
use crate::{App, audit};

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub by: Presented,
    pub origin: Origin,
    /// Why, as the caller was told.
    pub reason: String,
}

/// Logs a refusal, and records it at most once a minute for each credential. `request` is the method and the route.
pub async fn record(app: &App, refused: Refused, request: String) -> Result<(), Error> {
    let Refused { by, origin, reason } = refused;
    let (company, client, request_id) =
        (by.company.0, origin.address.to_canonical(), origin.request.as_str());
    tracing::info!(company, %client, request_id, request, reason, "request refused");
    if !app.services().repeats().is_first(Repeated::Refusal(by.hash), app.now()) {
        return Ok(());
    }
    app.write_from(&Access::Credential(by), Some(origin), RecordRefusal { request, reason }).await
}

struct RecordRefusal {
    request: String,
    reason: String,
}

impl Command for RecordRefusal {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Read);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let detail = json!({ "request": self.request, "reason": self.reason });
        Ok(audit::record(tx, cx, Action::RequestRefused, None, &detail)?)
    }
}
