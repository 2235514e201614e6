//! Indexes custom fields of accounts that are older than the index table.

use rapport_domain::id::CompanyId;
use rapport_store::{Lane, Tx, account_field};

use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;

/// Accounts per step; each may have many fields.
const STEP: i64 = 100;

/// The companies with accounts still to index.
pub async fn unfilled(app: &App) -> Result<Vec<CompanyId>, Error> {
    app.read_across(account_field::unfilled).await
}

/// Indexes the next accounts of a company; returns whether there are more.
pub async fn fill_step(app: &App, company: CompanyId) -> Result<bool, Error> {
    app.write(&Access::System(company), FillFields).await
}

/// Makes some older accounts searchable by their custom fields.
struct FillFields;

impl Command for FillFields {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<bool, Error> {
        Ok(account_field::fill(tx, STEP)?)
    }
}
