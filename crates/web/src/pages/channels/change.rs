//! Changes to a channel and its codes, by admins.

use axum::response::Response;
use rapport_app::channel::{AddCode, ArchiveCode, DeleteChannel, DeleteCode, RenameChannel};
use rapport_domain::channel::{self, PromoCode};
use rapport_domain::id::ChannelId;
use rapport_domain::invalid::Invalid;

use crate::pages::channels::list::parse_name;
use crate::pages::channels::one::ChannelPage;
use crate::pages::channels::{PATH, path_of};
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;

pub async fn rename(action: Action<ChannelId>) -> Result<Response, Refusal> {
    let command = parse_name(&action.form).map(|name| RenameChannel { id: action.id, name });
    action.run(command, |page: &mut ChannelPage, draft| page.renaming = draft).await?;
    action.done(&path_of(action.id), "Channel renamed.")
}

pub async fn delete(action: Action<ChannelId>) -> Result<Response, Refusal> {
    action.act::<ChannelPage, _>(DeleteChannel(action.id)).await?;
    action.done(PATH, "Channel and codes deleted.")
}

pub async fn add_code(action: Action<ChannelId>) -> Result<Response, Refusal> {
    let (channel, archived) = (action.id, is_archived(&action.form));
    let command = parse_code(&action.form).map(|code| AddCode { channel, code, archived });
    let added = action.run(command, |page: &mut ChannelPage, draft| page.adding = draft).await?;
    let state = if added.archived_at.is_some() { "restored and archived" } else { "active" };
    action.done(&path_of(channel), format!("The code {} is {state}.", added.code.as_str()))
}

pub async fn archive_code(action: Action<ChannelId>) -> Result<Response, Refusal> {
    let (channel, archived) = (action.id, is_archived(&action.form));
    let command = parse_code(&action.form).map(|code| ArchiveCode { channel, code, archived });
    let done = action.run(command, banner::<ChannelPage>).await?;
    let code = done.code.as_str();
    let text = if archived {
        format!("Code {code} archived. It no longer matches.")
    } else {
        format!("Code {code} restored. It matches again.")
    };
    let back = vec![("code".to_owned(), code.to_owned()), ("archived".to_owned(), (!archived).to_string())];
    let path = path_of(channel);
    action.done(&path, Flash::good(text).undo(format!("{path}/codes/archive"), back))
}

pub async fn delete_code(action: Action<ChannelId>) -> Result<Response, Refusal> {
    let code = parse_code(&action.form);
    action.run(code.map(|code| DeleteCode { channel: action.id, code }), banner::<ChannelPage>).await?;
    let back = ["code", "archived"].map(|name| (name.to_owned(), action.form.text(name).trim().to_owned()));
    let flash = Flash::good(format!("Code {} deleted.", back[0].1));
    let path = path_of(action.id);
    action.done(&path, flash.undo(format!("{path}/codes"), back.to_vec()))
}

fn is_archived(form: &Form) -> bool {
    form.text("archived") == "true"
}

fn parse_code(form: &Form) -> Result<PromoCode, Invalid> {
    channel::parse_code(&form.members(&[("code", As::Text)]))
}
