//! The current step of an import: the result of the dry run, the progress, or the final result.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use rapport_domain::id::ImportId;
use rapport_domain::import::failure::Group;
use rapport_domain::import::{Counts, Import, SHOWN, State as Stage};
use rapport_domain::time::Time;
use serde::Deserialize;
use serde_json::Value;

use super::words::{self, Step};
use super::{find, path_of};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

#[derive(Template)]
#[template(path = "imports/show.html")]
pub struct ImportPage {
    frame: Frame,
    step: Step,
    import: Import,
    tried: Option<Tried>,
    /// The rows that failed by reason, and some of the promo codes that don't match.
    reasons: Vec<Group>,
    codes: Vec<String>,
    /// When the undo expires, if the import can still be undone.
    undo_until: Option<Time>,
}
framed!("imports": ImportPage);

/// The result of a dry run.
#[derive(Deserialize)]
struct Tried {
    rows: i64,
    counts: Counts,
    exact: bool,
    differences: Vec<Difference>,
    #[serde(default)]
    failures: Vec<Group>,
    #[serde(default)]
    unmatched_promo_codes: Vec<String>,
}

#[derive(Deserialize)]
struct Difference {
    line: i64,
    account: Meant,
    field: String,
    before: Value,
    after: Value,
}

#[derive(Deserialize)]
struct Meant {
    id: String,
    name: String,
}

/// The place on the columns page where the rows of a reason can be fixed.
pub(super) fn place(import: &Import, group: &Group) -> String {
    let number =
        group.column.as_ref().and_then(|name| import.columns.iter().position(|column| column.name == *name));
    match number {
        Some(_) if group.code == "unknown_status" => "words".to_owned(),
        Some(number) => format!("column-{number}"),
        None => "columns".to_owned(),
    }
}

impl ImportPage {
    /// The progress, in percent.
    fn percent(&self) -> i64 {
        let (done, all) = match self.import.state {
            Stage::Undoing => (self.import.undo.done, self.import.accounts),
            _ => (self.import.at.offset, self.import.bytes),
        };
        if all == 0 { 100 } else { (done.saturating_mul(100) / all).clamp(0, 100) }
    }

    fn columns_href(&self) -> String {
        format!("{}/columns", path_of(self.import.id))
    }

    /// The accounts that the import created, or those that it changed.
    fn accounts_href(&self, effect: &str) -> String {
        format!("/accounts?import={}&import_effect={effect}", self.import.id)
    }

    /// Whether the import would change anything.
    fn has_work(&self) -> bool {
        self.tried.as_ref().is_some_and(|tried| tried.counts.created + tried.counts.updated > 0)
    }
}

impl Load<ImportId> for ImportPage {
    async fn load(visit: &Visit<ImportId>) -> Result<Self, Refusal> {
        let Shown { frame, reply: import } = find(visit).await?;
        let tried = import.preview.clone().and_then(|found| serde_json::from_value(found).ok());
        let undo_until = import.undo_until().filter(|until| *until >= frame.now);
        let reasons = import.findings.by_rows().into_iter().cloned().collect();
        let codes = import.findings.unmatched_codes.iter().take(SHOWN).cloned().collect();
        Ok(Self { frame, step: Step::of(&import), import, tried, reasons, codes, undo_until })
    }
}

pub async fn show(visit: Visit<ImportId>) -> Result<Response, Refusal> {
    let page = ImportPage::load(&visit).await?;
    if page.step == Step::Columns {
        return Ok(Redirect::to(&format!("{}/columns", path_of(visit.id))).into_response());
    }
    Ok(page.respond())
}
