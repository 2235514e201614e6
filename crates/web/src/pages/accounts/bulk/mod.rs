//! Changes several accounts of a page at once, after a page that says what will change, and undoes that.

mod asked;
pub mod delete;
mod preview;

use axum::response::Response;
use rapport_app::Error;
use rapport_app::bulk::{ChangeAccounts, Changed, UndoChange, Undone};
use rapport_domain::id::BulkId;
use rapport_domain::invalid::Invalid;

pub use self::asked::NO_CHANNEL;
use self::asked::{Asked, Kind};
use self::preview::PreviewPage;
use crate::pages::WORK;
use crate::pages::accounts::PATH;
use crate::pages::accounts::list::AccountsPage;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::Page as _;
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::words::number::counted;

const UNDO: &str = "/accounts/bulk/undo";
/// A flash has little room, so the undo of a list with a longer address leads to the unfiltered list.
const MAX_NEXT: usize = 300;

/// Shows what will change.
pub async fn preview(action: Action) -> Result<Response, Refusal> {
    let next = next(&action.form);
    let action = on_list(action, &next);
    // Check the right before the form.
    action.frame(WORK).await?;
    let page = match Asked::read(&action.form) {
        Ok(asked) => PreviewPage::load(&action, asked, next).await?,
        Err(invalid) => Err(invalid),
    };
    let page = action.settle(page.map_err(Error::from), on_bar).await?;
    Ok(page.respond())
}

pub async fn apply(action: Action) -> Result<Response, Refusal> {
    let next = next(&action.form);
    let action = on_list(action, &next);
    let asked = Asked::read(&action.form);
    let words = asked.as_ref().map_or_else(|_| String::new(), Asked::done);
    let kind = asked.as_ref().map_or(Kind::Move, |asked| asked.kind);
    let changed = action.run(asked.map(|asked| ChangeAccounts(asked.change)), on_bar).await?;
    action.done(&next, flash(&changed, kind, &words, &next))
}

/// Puts a refused form on the bar of the list again.
fn on_bar(page: &mut AccountsPage, draft: Draft) {
    page.changing = draft;
}

fn on_list(action: Action, next: &str) -> Action {
    action.on_page(Form::of_query(next.split_once('?').map(|(_, query)| query)))
}

fn flash(done: &Changed, kind: Kind, words: &str, next: &str) -> Flash {
    let Changed { bulk, changed, same, refused, missed } = *done;
    let mut said = vec![format!("{} {words}.", accounts(changed))];
    let already = if kind == Kind::Move { "already there" } else { "already so" };
    said.extend((same > 0).then(|| format!("{same} {already}.")));
    said.extend(
        (refused > 0).then(|| format!("Not changed because there’s no room: {}.", accounts(refused))),
    );
    said.extend(
        (missed > 0).then(|| format!("Not changed because deleted meanwhile: {}.", accounts(missed))),
    );
    let text = said.join(" ");
    let Some(bulk) = bulk else { return Flash::bad(text) };
    let mut fields = vec![("bulk".to_owned(), bulk.to_string())];
    if next.len() <= MAX_NEXT {
        fields.push(("next".to_owned(), next.to_owned()));
    }
    Flash::good(text).undo(UNDO, fields)
}

pub async fn undo(action: Action) -> Result<Response, Refusal> {
    let form = &action.form;
    let malformed = |_| Invalid::one("/bulk", "malformed", "must be the id of a change");
    let command = form.text("bulk").parse::<BulkId>().map_err(malformed).map(UndoChange);
    let Undone { is_known, restored, kept } = action.run(command, banner::<AccountsPage>).await?;
    if !is_known {
        return action.done(&next(form), Flash::bad("This was undone already, or is too long ago."));
    }
    let mut said = vec![format!("{} restored.", accounts(restored))];
    said.extend((kept > 0).then(|| format!("Not restored because changed since: {}.", accounts(kept))));
    action.done(&next(form), said.join(" "))
}

fn accounts(count: usize) -> String {
    counted(i64::try_from(count).unwrap_or(i64::MAX), "account", "accounts")
}

/// The page that the form was on.
fn next(form: &Form) -> String {
    let next = own_path(form.text("next"));
    let is_list = next == PATH || next.starts_with("/accounts?");
    if is_list { next } else { PATH.to_owned() }
}
