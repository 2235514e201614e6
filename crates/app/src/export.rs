//! Records exports: who took which data out. The reads themselves are in [`crate::read`].

use rapport_domain::audit::Action;
use rapport_domain::id::CampaignId;
use rapport_domain::member::Role;
use rapport_store::Tx;
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// How much of the filter is recorded.
const MAX_FILTER_CHARS: usize = 1_000;

/// Records an export before its first byte is sent: an export that can't be recorded isn't made.
pub struct RecordExport {
    pub what: Exported,
    /// The file type, such as `csv`.
    pub format: &'static str,
    /// The filter, as in the address.
    pub filter: String,
}

/// The data that is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exported {
    Accounts,
    Campaign(CampaignId),
    Audit,
}

impl RecordExport {
    /// All members of a campaign, as CSV.
    pub fn of_campaign(id: CampaignId) -> Self {
        Self { what: Exported::Campaign(id), format: "csv", filter: String::new() }
    }
}

impl Command for RecordExport {
    type Reply = ();
    // The read that comes before it checks the role that the data needs.
    const NEEDS: Needs = Needs::Role(Role::Member);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let (action, target) = match self.what {
            Exported::Accounts => (Action::AccountExported, None),
            Exported::Campaign(id) => (Action::CampaignExported, Some(id.to_string())),
            Exported::Audit => (Action::AuditExported, None),
        };
        let filter: String = self.filter.chars().take(MAX_FILTER_CHARS).collect();
        let detail = if filter.is_empty() {
            json!({ "format": self.format })
        } else {
            json!({ "format": self.format, "filter": filter })
        };
        Ok(audit::record(tx, cx, action, target, &detail)?)
    }
}
