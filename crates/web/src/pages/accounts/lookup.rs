//! Creates an account from a domain's home page, after showing what was found.

use askama::Template;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::lookup::CreateFromLookup;
use rapport_app::read::account::of_site;
use rapport_domain::account::Account;
use rapport_domain::id::AccountId;
use rapport_domain::lookup::{Preview, Request};
use rapport_domain::pipeline::Status;
use serde_json::Value;

use crate::pages::WORK;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, Page as _, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::shared::lookup as reader;

#[derive(Template)]
#[template(path = "accounts/lookup.html")]
pub struct LookupPage {
    frame: Frame,
    draft: Draft,
    found: Option<Preview>,
    /// The account that was already created from this domain.
    known: Option<AccountId>,
}
framed!("accounts": LookupPage);

impl LookupPage {
    /// The custom fields of the new account.
    fn fields(&self) -> Vec<(String, String)> {
        let fields = self.found.as_ref().map(Preview::fields).unwrap_or_default();
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        fields.into_iter().map(|(key, value)| (key, text(value))).collect()
    }
}

impl Load<()> for LookupPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let frame = visit.frame(WORK).await?;
        Ok(Self { frame, draft: Draft::default(), found: None, known: None })
    }
}

/// Fetches the home page and shows what was found. A form sends this, so that a link on another site cannot make us
/// fetch anything.
pub async fn preview(action: Action) -> Result<Response, Refusal> {
    // Check the role before fetching anything.
    let page = LookupPage::load(&action).await?;
    let preview = fetch(&action).await;
    let preview = action.settle(preview, |page: &mut LookupPage, draft| page.draft = draft).await?;
    let known = known(&action, &preview).await?;
    let draft = Draft::new([
        ("domain", preview.domain.clone()),
        ("name", preview.name.clone()),
        ("status", Status::Prospect.as_str().to_owned()),
    ]);
    Ok(LookupPage { draft, found: Some(preview), known, ..page }.respond())
}

async fn fetch(action: &Action) -> Result<Preview, Error> {
    let request = Request::parse(&action.form.members(&[("domain", As::Text)]))?;
    reader::preview(action.pages.app(), &request.site).await
}

pub async fn create(action: Action) -> Result<Response, Refusal> {
    action.frame(WORK).await?;
    let mut found = None;
    let created = try_create(&action, &mut found).await;
    let put = |page: &mut LookupPage, draft| {
        page.draft = draft;
        page.found = found;
    };
    let account = action.settle(created, put).await?;
    let text = format!("“{}” created from {}.", account.name, action.form.text("domain").trim());
    action.done(&format!("/accounts/{}", account.id), text)
}

/// Creates the account. What was found is kept for the page, should that fail.
async fn try_create(action: &Action, found: &mut Option<Preview>) -> Result<Account, Error> {
    let mut members = action.form.members(&[("domain", As::Text), ("name", As::Text), ("status", As::Text)]);
    members.insert("create".to_owned(), Value::from(true));
    let Request { site, create } = Request::parse(&members)?;
    let preview = reader::preview(action.pages.app(), &site).await?;
    *found = Some(preview.clone());
    let create = create.unwrap_or_default();
    Ok(action.submit(CreateFromLookup { preview, create }).await?.reply)
}

async fn known(visit: &Visit, preview: &Preview) -> Result<Option<AccountId>, Refusal> {
    let (access, domain) = (visit.visitor.access(), preview.domain.clone());
    let found = visit.pages.app().read(&access, WORK, move |snapshot, _| of_site(snapshot, &domain));
    Ok(found.await.map_err(|error| visit.visitor.refused(error))?.reply)
}
