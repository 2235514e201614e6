//! Records exports: who took which data out. The reads themselves are in [`crate::read`].

use rapport_domain::audit::Action;
use rapport_domain::id::{AccountId, CampaignId};
use rapport_domain::right::Right;
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
    /// Everything that is stored about an account.
    Account(AccountId),
    /// Everything that the company stored.
    Company,
    /// What is stored about the person who asks.
    OwnData,
}

impl Exported {
    /// The right that it takes.
    pub const fn right(self) -> Right {
        match self {
            Self::Accounts | Self::Campaign(_) => Right::Export,
            Self::Audit => Right::Audit,
            Self::Account(_) => Right::AccountData,
            Self::Company => Right::Company,
            Self::OwnData => Right::Own,
        }
    }
}

impl RecordExport {
    /// Everything of one kind.
    pub fn whole(what: Exported, format: &'static str) -> Self {
        Self { what, format, filter: String::new() }
    }

    /// All members of a campaign, as CSV.
    pub fn of_campaign(id: CampaignId) -> Self {
        Self::whole(Exported::Campaign(id), "csv")
    }
}

impl Command for RecordExport {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Read);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        cx.caller.require(self.what.right())?;
        let (action, target) = match self.what {
            Exported::Accounts => (Action::AccountExported, None),
            Exported::Campaign(id) => (Action::CampaignExported, Some(id.to_string())),
            Exported::Audit => (Action::AuditExported, None),
            Exported::Account(id) => (Action::AccountDataExported, Some(id.to_string())),
            Exported::Company => (Action::CompanyExported, None),
            Exported::OwnData => (Action::PersonExported, None),
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
