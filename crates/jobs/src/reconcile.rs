//! Compares what this node owns in the database with what it holds in memory.
//!
//! A row that the node owns but doesn't work on would wait forever: the answer to a commit was lost, an
//! outcome couldn't be recorded, or a release failed. Instead of trusting every path, the node checks, in
//! steps bounded by what it may hold. A row found twice in a row goes back to the database and is claimed
//! like anything else that waits there. Found once, it may just be a commit in its last moment.

use std::collections::{HashMap, HashSet};

use rapport_app::dispatch::Owned;
use rapport_app::ownership::GiveBack;
use rapport_app::{Access, App, Error, metric};
use rapport_domain::id::{CompanyId, DeliveryId, RedeliveryId};
use rapport_store::{delivery, manual_attempt};

use crate::places::Gates;
use crate::rounds::unless_deleted;

/// Rows per read, and per transaction that gives some back.
const PAGE: i64 = 1_000;
const STEP: usize = 500;

/// Rows that were owned but not held at the last check.
#[derive(Default)]
pub struct Suspects(HashSet<(CompanyId, Owned)>);

/// Compares once; returns how many rows were given back.
pub async fn reconcile(app: &App, node: i64, gates: &Gates, suspects: &mut Suspects) -> Result<usize, Error> {
    let mut found = HashSet::new();
    let mut after = (CompanyId(0), DeliveryId::from_bytes([0; 16]));
    loop {
        let page = app.read_across(move |across| delivery::owned_after(across, node, after, PAGE)).await?;
        let last = page.last().copied();
        let full = i64::try_from(page.len()).unwrap_or(0) == PAGE;
        let owned = page.into_iter().map(|(company, id)| (company, Owned::Delivery(id))).collect();
        found.extend(gates.not_held(owned, |(_, owned)| *owned));
        match last.filter(|_| full) {
            Some(last) => after = last,
            None => break,
        }
    }
    let mut after = (CompanyId(0), RedeliveryId::from_bytes([0; 16]));
    loop {
        let page =
            app.read_across(move |across| manual_attempt::owned_after(across, node, after, PAGE)).await?;
        let last = page.last().copied();
        let full = i64::try_from(page.len()).unwrap_or(0) == PAGE;
        let owned = page.into_iter().map(|(company, id)| (company, Owned::Manual(id))).collect();
        found.extend(gates.not_held(owned, |(_, owned)| *owned));
        match last.filter(|_| full) {
            Some(last) => after = last,
            None => break,
        }
    }
    let mut lost: HashMap<CompanyId, Vec<Owned>> = HashMap::new();
    for (company, owned) in found.intersection(&suspects.0) {
        lost.entry(*company).or_default().push(*owned);
    }
    suspects.0 = found;
    let mut recovered = 0;
    for (company, owned) in lost {
        for step in owned.chunks(STEP) {
            let give_back = GiveBack { node, owned: step.to_vec() };
            recovered += unless_deleted(app.write(&Access::System(company), give_back).await)?;
        }
    }
    if recovered > 0 {
        metric::DELIVERIES_RECOVERED.counter([]).increment(recovered as u64);
        tracing::info!(recovered, "recovered deliveries that nobody was working on");
    }
    Ok(recovered)
}
