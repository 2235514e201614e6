//! Notes on an account. They aren't contact. `correction` edits, deletes and restores them.

use rapport_domain::audit::Action;
use rapport_domain::id::AccountId;
use rapport_domain::note::{NewNote, Note};
use rapport_domain::right::Right;
use rapport_store::{Tx, note};
use serde_json::json;

use crate::access::Needs;
use crate::account::lock;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

pub struct AddNote {
    pub account: AccountId,
    pub note: NewNote,
}

impl Command for AddNote {
    type Reply = Note;
    const NEEDS: Needs = Needs::Right(Right::Work);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Note, Error> {
        let account = lock(tx, self.account)?;
        let NewNote { text, pinned } = self.note.clone();
        let added = Note {
            id: cx.id(),
            account: account.id,
            text,
            pinned,
            author: cx.actor().clone(),
            created_at: cx.now,
        };
        note::insert(tx, &added)?;
        if audit::is_by_hand(cx) {
            let detail = json!({ "note": added.id.to_string(), "pinned": pinned });
            audit::record(tx, cx, Action::NoteCreated, Some(account.id.to_string()), &detail)?;
        }
        Ok(added)
    }
}
