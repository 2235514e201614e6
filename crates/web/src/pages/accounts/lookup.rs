//! Creates an account from a domain's home page, after showing what was found.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::lookup::CreateFromLookup;
use rapport_app::read::account::of_site;
use rapport_domain::id::AccountId;
use rapport_domain::lookup::{Preview, Request};
use rapport_domain::pipeline::Status;
use serde_json::{Map, Value};

use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};
use crate::shared::lookup as reader;

#[derive(Template)]
#[template(path = "accounts/lookup.html")]
struct LookupPage {
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

pub async fn show(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    let Shown { frame, .. } = pages.show(&visitor, MEMBER, |_, _| Ok(())).await?;
    Ok(LookupPage { frame, draft: Draft::default(), found: None, known: None }.respond())
}

/// Fetches the home page and shows what was found. A form sends this, so that a link on another site cannot make us
/// fetch anything.
pub async fn preview(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    // Check the role before fetching anything.
    let Shown { frame, .. } = pages.show(&visitor, MEMBER, |_, _| Ok(())).await?;
    let found = match Request::parse(&form.members(&[("domain", As::Text)])) {
        Ok(request) => reader::preview(pages.app(), &request.site).await,
        Err(invalid) => Err(invalid.into()),
    };
    match found {
        Ok(preview) => {
            let known = known(&pages, &visitor, &preview).await?;
            let draft = Draft::new([
                ("domain", preview.domain.clone()),
                ("name", preview.name.clone()),
                ("status", Status::Prospect.as_str().to_owned()),
            ]);
            Ok(LookupPage { frame, draft, found: Some(preview), known }.respond())
        }
        Err(error) => refuse(frame, &visitor, &form, error, None),
    }
}

pub async fn create(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let Shown { frame, .. } = pages.show(&visitor, MEMBER, |_, _| Ok(())).await?;
    let mut members: Map<String, Value> =
        form.members(&[("domain", As::Text), ("name", As::Text), ("status", As::Text)]);
    members.insert("create".to_owned(), Value::from(true));
    let (site, create) = match Request::parse(&members) {
        Ok(Request { site, create }) => (site, create.unwrap_or_default()),
        Err(invalid) => return refuse(frame, &visitor, &form, invalid.into(), None),
    };
    let preview = match reader::preview(pages.app(), &site).await {
        Ok(preview) => preview,
        Err(error) => return refuse(frame, &visitor, &form, error, None),
    };
    let command = CreateFromLookup { preview: preview.clone(), create };
    match pages.submit(&visitor, &form, command).await {
        Ok(created) => {
            let account = created.reply;
            let flash = Flash::good(format!("“{}” created from {}.", account.name, site.name));
            Ok(pages.done(&format!("/accounts/{}", account.id), flash))
        }
        Err(error) => refuse(frame, &visitor, &form, error, Some(preview)),
    }
}

fn refuse(
    frame: Frame,
    visitor: &Visitor,
    form: &Form,
    error: Error,
    found: Option<Preview>,
) -> Result<Response, Refusal> {
    let draft = Draft::refused(form, error).map_err(|error| visitor.refused(error))?;
    Ok(LookupPage { frame, draft, found, known: None }.refuse())
}

async fn known(pages: &Pages, visitor: &Visitor, preview: &Preview) -> Result<Option<AccountId>, Refusal> {
    let (access, domain) = (visitor.access(), preview.domain.clone());
    let found = pages.app().read(&access, MEMBER, move |snapshot, _| of_site(snapshot, &domain));
    Ok(found.await.map_err(|error| visitor.refused(error))?.reply)
}
