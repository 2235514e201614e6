//! Campaigns, and the numbers of accounts that they include and exclude.

use rapport_domain::audience::Filter;
use rapport_domain::campaign::{Aim, Campaign, Goal, MAX_COUNT, Rule};
use rapport_domain::id::CampaignId;
use rapport_domain::text::fold;
use rapport_domain::time::Time;
use serde_json::{Map, Value as Json};

use crate::account_list::{CappedCount, count_capped};
use crate::error::Error;
use crate::page::Page;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company LIST = "SELECT id, name, goal, include_trials, filters, created_at, updated_at FROM campaign \
                    WHERE company = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    company GET = "SELECT id, name, goal, include_trials, filters, created_at, updated_at FROM campaign \
                   WHERE company = $1 AND id = $2";
    company LOCK = "SELECT id, name, goal, include_trials, filters, created_at, updated_at FROM campaign \
                    WHERE company = $1 AND id = $2 FOR UPDATE";
    company INSERT = "INSERT INTO campaign (company, id, name, name_folded, goal, include_trials, filters, \
                      created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                      ON CONFLICT (company, name_folded) DO NOTHING RETURNING id";
    company NAME_TAKEN = "SELECT id FROM campaign WHERE company = $1 AND name_folded = $2 AND id <> $3";
    company UPDATE = "UPDATE campaign SET name = $3, name_folded = $4, goal = $5, include_trials = $6, \
                      filters = $7, updated_at = $8 WHERE company = $1 AND id = $2";
    company DELETE = "DELETE FROM campaign WHERE company = $1 AND id = $2";
}

/// The number of included accounts, and how many matching accounts each rule excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub members: CappedCount,
    /// Every rule of the goal; each account counts under the first rule that excludes it.
    pub excluded: Vec<(Rule, CappedCount)>,
}

/// Campaigns, newest first, before `before` if given.
pub fn list(
    snapshot: &mut Snapshot,
    before: Option<CampaignId>,
    limit: i64,
) -> Result<Page<Campaign>, Error> {
    let before = before.unwrap_or(CampaignId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&LIST, values![&before, limit + 1])?;
    let campaigns = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(campaigns, limit))
}

pub fn get(snapshot: &mut Snapshot, id: CampaignId) -> Result<Option<Campaign>, Error> {
    snapshot.query_opt(&GET, values![&id])?.map(read).transpose()
}

pub fn lock(tx: &mut Tx, id: CampaignId) -> Result<Option<Campaign>, Error> {
    tx.query_opt(&LOCK, values![&id])?.map(read).transpose()
}

/// Returns `false` if the name is taken.
pub fn insert(tx: &mut Tx, campaign: &Campaign) -> Result<bool, Error> {
    let Campaign { id, name, aim, created_at, updated_at } = campaign;
    let (folded, filters) = (fold(name), aim.filters.to_json().to_string());
    let goal = aim.goal.as_str();
    let row = tx.query_opt(
        &INSERT,
        values![id, name, &folded, goal, aim.include_trials, &filters, *created_at, *updated_at],
    )?;
    Ok(row.is_some())
}

/// Writes a changed campaign back; returns `false` if another campaign has its name.
pub fn update(tx: &mut Tx, campaign: &Campaign) -> Result<bool, Error> {
    let Campaign { id, name, aim, updated_at, .. } = campaign;
    let (folded, filters) = (fold(name), aim.filters.to_json().to_string());
    if tx.query_opt(&NAME_TAKEN, values![&folded, id])?.is_some() {
        return Ok(false);
    }
    let goal = aim.goal.as_str();
    tx.execute(&UPDATE, values![id, name, &folded, goal, aim.include_trials, &filters, *updated_at])?;
    Ok(true)
}

/// Returns `false` if it doesn't exist.
pub fn delete(tx: &mut Tx, id: CampaignId) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE, values![&id])? > 0)
}

/// Counts included and excluded accounts, each up to `MAX_COUNT`.
pub fn count(snapshot: &mut Snapshot, aim: &Aim, now: Time) -> Result<Counts, Error> {
    count_up_to(snapshot, aim, now, MAX_COUNT)
}

/// The same, each up to `cap`.
pub fn count_up_to(snapshot: &mut Snapshot, aim: &Aim, now: Time, cap: i64) -> Result<Counts, Error> {
    let members = count_parts(snapshot, aim.members().into_iter(), now, cap)?;
    let mut excluded = Vec::new();
    for rule in aim.rules() {
        excluded.push((rule, count_parts(snapshot, aim.excluded_by(rule).into_iter(), now, cap)?));
    }
    Ok(Counts { members, excluded })
}

fn count_parts(
    snapshot: &mut Snapshot,
    parts: impl Iterator<Item = Filter>,
    now: Time,
    cap: i64,
) -> Result<CappedCount, Error> {
    let mut whole = CappedCount { count: 0, capped: false };
    for part in parts {
        let room = cap - whole.count;
        let counted = count_capped(snapshot, &part, now, room)?;
        whole.count += counted.count;
        whole.capped |= counted.capped;
    }
    Ok(whole)
}

fn read(mut row: Row) -> Result<Campaign, Error> {
    let row = &mut row;
    let unreadable = || Error::fault("a stored campaign is not valid");
    Ok(Campaign {
        id: row.take()?,
        name: row.take()?,
        aim: Aim {
            goal: Goal::parse(&row.take::<String>()?).map_err(|_| unreadable())?,
            include_trials: row.take()?,
            filters: {
                let map: Map<String, Json> =
                    serde_json::from_str(&row.take::<String>()?).map_err(|_| unreadable())?;
                Filter::parse(&map, "").map_err(|_| unreadable())?
            },
        },
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}
