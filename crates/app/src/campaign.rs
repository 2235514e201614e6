//! Campaigns: create, change, delete. Storage computes a campaign's members each time they are read.

use rapport_domain::audit::Action;
use rapport_domain::campaign::{Campaign, Draft, Patch};
use rapport_domain::id::CampaignId;
use rapport_domain::right::Right;
use rapport_store::{Tx, campaign};
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// Campaigns are work with accounts, so the member role is enough.
const NEEDS: Needs = Needs::Right(Right::Work);

pub struct CreateCampaign(pub Draft);

impl Command for CreateCampaign {
    type Reply = Campaign;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Campaign, Error> {
        let Draft { name, aim } = self.0.clone();
        let created = Campaign { id: cx.id(), name, aim, created_at: cx.now, updated_at: cx.now };
        if !campaign::insert(tx, &created)? {
            return Err(name_taken());
        }
        record(tx, cx, Action::CampaignCreated, created.id, &shown(&created))?;
        Ok(created)
    }
}

pub struct PatchCampaign {
    pub id: CampaignId,
    pub patch: Patch,
}

impl Command for PatchCampaign {
    type Reply = Campaign;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Campaign, Error> {
        let found = campaign::lock(tx, self.id)?.ok_or(Error::NotFound("campaign"))?;
        let (new, changed) = found.patched(&self.patch, cx.now);
        if changed.is_empty() {
            return Ok(found);
        }
        if !campaign::update(tx, &new)? {
            return Err(name_taken());
        }
        let (from, to) = (shown(&found), shown(&new));
        let change = |member: &str| json!({ "from": from[member], "to": to[member] });
        let detail: Map<String, Value> =
            changed.into_iter().map(|member| (member.to_owned(), change(member))).collect();
        record(tx, cx, Action::CampaignChanged, self.id, &Value::Object(detail))?;
        Ok(new)
    }
}

pub struct DeleteCampaign(pub CampaignId);

impl Command for DeleteCampaign {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = campaign::lock(tx, self.0)?.ok_or(Error::NotFound("campaign"))?;
        campaign::delete(tx, self.0)?;
        record(tx, cx, Action::CampaignDeleted, self.0, &json!({ "name": found.name }))
    }
}

fn shown(campaign: &Campaign) -> Value {
    let Campaign { name, aim, .. } = campaign;
    json!({
        "name": name,
        "goal": aim.goal.as_str(),
        "include_trials": aim.include_trials,
        "filters": aim.filters.to_json(),
    })
}

fn record(tx: &mut Tx, cx: &Context, action: Action, id: CampaignId, detail: &Value) -> Result<(), Error> {
    Ok(audit::record(tx, cx, action, Some(id.to_string()), detail)?)
}

fn name_taken() -> Error {
    Error::conflict("name_taken", "another campaign already has this name")
}
