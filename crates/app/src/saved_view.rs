//! Saved views of the account list: everyone in the company sees them. Viewers may change only those they saved.

use rapport_domain::audit::Action;
use rapport_domain::right::Right;
use rapport_domain::saved_view::{MAX_VIEWS, Save, SavedView};
use rapport_domain::text::fold;
use rapport_store::{Tx, saved_view};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

const NEEDS: Needs = Needs::Right(Right::Own);

pub struct SaveView(pub Save);

impl Command for SaveView {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Save { name, query, replace } = &self.0;
        let views = saved_view::list(tx)?;
        let known = views.iter().find(|view| fold(&view.name) == fold(name));
        if let Some(found) = known.filter(|_| *replace) {
            may_change(cx, found)?;
            saved_view::replace(tx, name, query)?;
            let view = SavedView { name: name.clone(), query: query.clone(), ..found.clone() };
            let detail = audit::changes(&shown(found), &shown(&view));
            return record(tx, cx, Action::ViewChanged, name, &detail);
        }
        if views.len() >= MAX_VIEWS {
            let detail = format!("a company can have at most {MAX_VIEWS} views; delete one first");
            return Err(Error::conflict("too_many_views", detail));
        }
        let (name, query, created_by) = (name.clone(), query.clone(), cx.actor().person());
        let view = SavedView { name, query, created_at: cx.now, created_by };
        if !saved_view::insert(tx, &view)? {
            return Err(name_taken());
        }
        record(tx, cx, Action::ViewSaved, &view.name, &json!({ "query": view.query }))
    }
}

pub struct RenameView {
    pub from: String,
    pub to: String,
}

impl Command for RenameView {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = remove(tx, cx, &self.from)?;
        let renamed = SavedView { name: self.to.clone(), ..found.clone() };
        if !saved_view::insert(tx, &renamed)? {
            return Err(name_taken());
        }
        record(tx, cx, Action::ViewRenamed, &found.name, &audit::changes(&shown(&found), &shown(&renamed)))
    }
}

/// Deletes a view, and returns it.
pub struct DeleteView(pub String);

impl Command for DeleteView {
    type Reply = SavedView;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<SavedView, Error> {
        let removed = remove(tx, cx, &self.0)?;
        record(tx, cx, Action::ViewDeleted, &removed.name, &json!({ "query": removed.query }))?;
        Ok(removed)
    }
}

fn shown(view: &SavedView) -> Value {
    json!({ "name": view.name, "query": view.query })
}

/// Records a change unless it changed nothing. A view has no id, so its name is the target.
fn record(tx: &mut Tx, cx: &Context, action: Action, name: &str, detail: &Value) -> Result<(), Error> {
    if detail.as_object().is_some_and(|changed| !changed.is_empty()) {
        audit::record(tx, cx, action, Some(name.to_owned()), detail)?;
    }
    Ok(())
}

fn remove(tx: &mut Tx, cx: &Context, name: &str) -> Result<SavedView, Error> {
    let views = saved_view::list(tx)?;
    let found = views.into_iter().find(|view| fold(&view.name) == fold(name));
    let found = found.ok_or(Error::NotFound("view"))?;
    may_change(cx, &found)?;
    saved_view::delete(tx, name)?;
    Ok(found)
}

/// Who works with accounts may change every view, others only their own.
fn may_change(cx: &Context, view: &SavedView) -> Result<(), Error> {
    if view.is_of(cx.actor().person()) || cx.caller.may(Right::Work) {
        return Ok(());
    }
    Err(Error::forbidden("role_required", "viewers can only change the views that they saved"))
}

fn name_taken() -> Error {
    Error::conflict("name_taken", "another view already has this name")
}
