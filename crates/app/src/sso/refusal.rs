//! Refused logins: each in the log, and some in the company's audit log. Neither says what the provider's answer
//! contained.

use rapport_domain::audit::Action;
use rapport_domain::id::CompanyId;
use rapport_domain::sso::entry::Reason;
use rapport_store::Tx;
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::origin::Origin;
use crate::repeats::Repeated;
use crate::{App, audit};

/// Records a refusal, at most once a minute for each reason.
pub async fn record(
    app: &App,
    company: CompanyId,
    reason: Reason,
    origin: Option<Origin>,
) -> Result<(), Error> {
    let client = origin.map(|origin| origin.address.to_canonical().to_string());
    tracing::info!(
        company = company.0,
        client,
        reason = reason.as_str(),
        "login with single sign-on refused"
    );
    if !app.services().repeats().is_first(Repeated::SsoRefusal(company, reason), app.now()) {
        return Ok(());
    }
    app.write_from(&Access::System(company), origin, RecordRefusal(reason)).await
}

struct RecordRefusal(Reason);

impl Command for RecordRefusal {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let detail = json!({ "by": "single sign-on", "reason": self.0.as_str() });
        Ok(audit::record(tx, cx, Action::SessionFailed, None, &detail)?)
    }
}
