//! Changes to a channel and its codes, by admins.

use axum::extract::{Path, State};
use axum::response::Response;
use rapport_app::channel::{AddCode, ArchiveCode, DeleteChannel, DeleteCode, RenameChannel};
use rapport_domain::channel::{self, PromoCode};
use rapport_domain::invalid::Invalid;

use crate::pages::Pages;
use crate::pages::channels::list::parse_name;
use crate::pages::channels::one::{ChannelPage, read_id};
use crate::pages::channels::{PATH, path_of, refused};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::Page as _;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

pub async fn rename(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = read_id(&id)?;
    let renamed = match parse_name(&form) {
        Ok(name) => pages.submit(&visitor, &form, RenameChannel { id, name }).await,
        Err(invalid) => Err(invalid.into()),
    };
    match renamed {
        Ok(_) => Ok(pages.done(&path_of(id), Flash::good("Channel renamed."))),
        Err(error) => {
            let renaming = refused(&visitor, &form, error)?;
            let mut page = ChannelPage::load(&pages, &visitor, id, None, true).await?;
            page.renaming = renaming;
            Ok(page.refuse())
        }
    }
}

pub async fn delete(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = read_id(&id)?;
    match pages.submit(&visitor, &form, DeleteChannel(id)).await {
        Ok(()) => Ok(pages.done(PATH, Flash::good("Channel and codes deleted."))),
        Err(error) => {
            let deleting = refused(&visitor, &form, error)?;
            let mut page = ChannelPage::load(&pages, &visitor, id, None, true).await?;
            page.deleting = deleting;
            Ok(page.refuse())
        }
    }
}

pub async fn add_code(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let channel = read_id(&id)?;
    let added = match parse_code(&form) {
        Ok(code) => {
            let command = AddCode { channel, code, archived: is_archived(&form) };
            pages.submit(&visitor, &form, command).await
        }
        Err(invalid) => Err(invalid.into()),
    };
    match added {
        Ok(added) => {
            let state = if added.archived_at.is_some() { "restored and archived" } else { "active" };
            let flash = Flash::good(format!("The code {} is {state}.", added.code.as_str()));
            Ok(pages.done(&path_of(channel), flash))
        }
        Err(error) => {
            let adding = refused(&visitor, &form, error)?;
            let mut page = ChannelPage::load(&pages, &visitor, channel, None, true).await?;
            page.adding = adding;
            Ok(page.refuse())
        }
    }
}

pub async fn archive_code(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let channel = read_id(&id)?;
    let archived = is_archived(&form);
    let command = ArchiveCode { channel, code: parse_code(&form)?, archived };
    let done = pages.submit(&visitor, &form, command).await.map_err(|error| visitor.refused(error))?;
    let code = done.code.as_str();
    let text = if archived {
        format!("Code {code} archived. It no longer matches.")
    } else {
        format!("Code {code} restored. It matches again.")
    };
    let back = vec![("code".to_owned(), code.to_owned()), ("archived".to_owned(), (!archived).to_string())];
    let path = path_of(channel);
    Ok(pages.done(&path, Flash::good(text).undo(format!("{path}/codes/archive"), back)))
}

pub async fn delete_code(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let channel = read_id(&id)?;
    let code = parse_code(&form)?;
    let flash = Flash::good(format!("Code {} deleted.", code.as_str()));
    let back = [("code", code.as_str()), ("archived", form.text("archived"))];
    let back = back.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let deleted = pages.submit(&visitor, &form, DeleteCode { channel, code }).await;
    deleted.map_err(|error| visitor.refused(error))?;
    let path = path_of(channel);
    Ok(pages.done(&path, flash.undo(format!("{path}/codes"), back)))
}

fn is_archived(form: &Form) -> bool {
    form.text("archived") == "true"
}

fn parse_code(form: &Form) -> Result<PromoCode, Invalid> {
    channel::parse_code(&form.members(&[("code", As::Text)]))
}
