//! Saved views of the account list: everyone in the company sees them and may change them.

use rapport_domain::member::Role;
use rapport_domain::saved_view::{MAX_VIEWS, Save, SavedView};
use rapport_domain::text::fold;
use rapport_store::{Tx, saved_view};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;

const NEEDS: Needs = Needs::Role(Role::Member);

pub struct SaveView(pub Save);

impl Command for SaveView {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Save { name, query, replace } = &self.0;
        if *replace && saved_view::replace(tx, name, query)? {
            return Ok(());
        }
        if saved_view::list(tx)?.len() >= MAX_VIEWS {
            let detail = format!("a company can have at most {MAX_VIEWS} views; delete one first");
            return Err(Error::conflict("too_many_views", detail));
        }
        let view = SavedView { name: name.clone(), query: query.clone(), created_at: cx.now };
        if saved_view::insert(tx, &view)? { Ok(()) } else { Err(name_taken()) }
    }
}

pub struct RenameView {
    pub from: String,
    pub to: String,
}

impl Command for RenameView {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        let found = remove(tx, &self.from)?;
        if saved_view::insert(tx, &SavedView { name: self.to.clone(), ..found })? {
            Ok(())
        } else {
            Err(name_taken())
        }
    }
}

/// Deletes a view, and returns it.
pub struct DeleteView(pub String);

impl Command for DeleteView {
    type Reply = SavedView;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<SavedView, Error> {
        remove(tx, &self.0)
    }
}

fn remove(tx: &mut Tx, name: &str) -> Result<SavedView, Error> {
    let views = saved_view::list(tx)?;
    let found = views.into_iter().find(|view| fold(&view.name) == fold(name));
    let found = found.ok_or(Error::NotFound("view"))?;
    saved_view::delete(tx, name)?;
    Ok(found)
}

fn name_taken() -> Error {
    Error::conflict("name_taken", "another view already has this name")
}
