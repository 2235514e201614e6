//! Channels and their promo codes.

use rapport_domain::audit::Action;
use rapport_domain::channel::{Channel, ChannelCode, PromoCode};
use rapport_domain::id::ChannelId;
use rapport_domain::right::Right;
use rapport_domain::time::Time;
use rapport_store::{Tx, channel};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

const NEEDS: Needs = Needs::Right(Right::Channels);

pub struct CreateChannel {
    pub name: String,
}

impl Command for CreateChannel {
    type Reply = Channel;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Channel, Error> {
        let created = Channel { id: cx.id(), name: self.name.clone(), created_at: cx.now };
        if !channel::insert(tx, &created)? {
            return Err(name_taken());
        }
        audit::record(
            tx,
            cx,
            Action::ChannelCreated,
            Some(created.id.to_string()),
            &json!({ "name": self.name }),
        )?;
        Ok(created)
    }
}

pub struct RenameChannel {
    pub id: ChannelId,
    pub name: String,
}

impl Command for RenameChannel {
    type Reply = Channel;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Channel, Error> {
        let found = lock(tx, self.id)?;
        if !channel::rename(tx, self.id, &self.name)? {
            return Err(name_taken());
        }
        let detail = json!({ "name": { "from": found.name, "to": self.name } });
        audit::record(tx, cx, Action::ChannelRenamed, Some(self.id.to_string()), &detail)?;
        Ok(Channel { name: self.name.clone(), ..found })
    }
}

/// Deletes a channel and its codes, unless accounts are attributed to it.
pub struct DeleteChannel(pub ChannelId);

impl Command for DeleteChannel {
    type Reply = ();
    const NEEDS: Needs = NEEDS;
    const EXCLUSIVE: bool = true;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = lock(tx, self.0)?;
        if channel::is_in_use(tx, self.0)? {
            return Err(Error::conflict(
                "channel_in_use",
                "accounts are attributed to this channel; archive its codes instead",
            ));
        }
        channel::delete(tx, self.0)?;
        audit::record(
            tx,
            cx,
            Action::ChannelDeleted,
            Some(self.0.to_string()),
            &json!({ "name": found.name }),
        )?;
        Ok(())
    }
}

pub struct AddCode {
    pub channel: ChannelId,
    pub code: PromoCode,
    /// Whether the code starts out archived, as when a deleted one is restored.
    pub archived: bool,
}

impl Command for AddCode {
    type Reply = ChannelCode;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ChannelCode, Error> {
        lock(tx, self.channel)?;
        let code = ChannelCode {
            channel: self.channel,
            code: self.code.clone(),
            archived_at: self.archived.then_some(cx.now),
            created_at: cx.now,
        };
        if !channel::insert_code(tx, &code)? {
            return Err(Error::conflict("code_taken", "this promo code already exists"));
        }
        record_code(tx, cx, Action::PromoCodeCreated, self.channel, &self.code)?;
        Ok(code)
    }
}

/// An archived code no longer matches. Accounts keep their attribution, and the code stays taken.
pub struct ArchiveCode {
    pub channel: ChannelId,
    pub code: PromoCode,
    pub archived: bool,
}

impl Command for ArchiveCode {
    type Reply = ChannelCode;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<ChannelCode, Error> {
        lock(tx, self.channel)?;
        let found = find_code(tx, self.channel, &self.code)?;
        let archived_at: Option<Time> = if self.archived { found.archived_at.or(Some(cx.now)) } else { None };
        channel::archive_code(tx, self.channel, &self.code, archived_at)?;
        let action = if self.archived { Action::PromoCodeArchived } else { Action::PromoCodeRestored };
        record_code(tx, cx, action, self.channel, &found.code)?;
        Ok(ChannelCode { archived_at, ..found })
    }
}

pub struct DeleteCode {
    pub channel: ChannelId,
    pub code: PromoCode,
}

impl Command for DeleteCode {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        if !channel::delete_code(tx, self.channel, &self.code)? {
            return Err(Error::NotFound("promo code"));
        }
        record_code(tx, cx, Action::PromoCodeDeleted, self.channel, &self.code)?;
        Ok(())
    }
}

fn lock(tx: &mut Tx, id: ChannelId) -> Result<Channel, Error> {
    channel::lock(tx, id)?.ok_or(Error::NotFound("channel"))
}

fn find_code(tx: &mut Tx, id: ChannelId, code: &PromoCode) -> Result<ChannelCode, Error> {
    let codes = channel::codes(tx, id)?;
    codes.into_iter().find(|found| found.code.folded() == code.folded()).ok_or(Error::NotFound("promo code"))
}

fn record_code(
    tx: &mut Tx,
    cx: &Context,
    action: Action,
    channel: ChannelId,
    code: &PromoCode,
) -> Result<(), rapport_store::Error> {
    audit::record(tx, cx, action, Some(channel.to_string()), &json!({ "code": code.as_str() }))
}

fn name_taken() -> Error {
    Error::conflict("name_taken", "another channel already has this name")
}
