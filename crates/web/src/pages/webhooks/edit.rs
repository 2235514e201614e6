//! Creates or edits a webhook: its URL, description and events.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use rapport_app::Error;
use rapport_app::read::webhook::one;
use rapport_app::webhook::{CreateWebhook, NewSecret, PatchWebhook};
use rapport_domain::destination::Destination;
use rapport_domain::event::Kind;
use rapport_domain::id::WebhookId;
use rapport_domain::invalid::{Fault, Invalid};
use rapport_domain::webhook::{Create, Patch, SELECTABLE, Webhook, refused};
use serde_json::{Map, Value};

use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::webhooks::secret::SecretPage;
use crate::pages::webhooks::{PATH, meaning, named};
use crate::pages::{ADMIN, Pages};

/// The field that selects all events or only the ticked ones.
const WHICH: &str = "which";
const ALL: &str = "all";
const SOME: &str = "some";

#[derive(Template)]
#[template(path = "webhooks/edit.html")]
struct EditPage {
    frame: Frame,
    /// The webhook that is edited. None for a new one.
    webhook: Option<Webhook>,
    draft: Draft,
    kinds: [(Kind, &'static str); 4],
}
framed!("webhooks": EditPage);

impl EditPage {
    fn new(frame: Frame, webhook: Option<Webhook>, draft: Draft) -> Self {
        Self { frame, webhook, draft, kinds: SELECTABLE.map(|kind| (kind, meaning(kind))) }
    }
}

pub async fn show_new(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    let Shown { frame, .. } = pages.show(&visitor, ADMIN, |_, _| Ok(())).await?;
    let draft = Draft::new([(WHICH, ALL.to_owned())]);
    Ok(EditPage::new(frame, None, draft).respond())
}

pub async fn create(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    match try_create(&pages, &visitor, &form).await {
        Ok(NewSecret { webhook, secret, .. }) => {
            let Shown { frame, .. } = pages.show(&visitor, ADMIN, |_, _| Ok(())).await?;
            Ok(SecretPage::made(frame, webhook, secret).respond())
        }
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            let Shown { frame, .. } = pages.show(&visitor, ADMIN, |_, _| Ok(())).await?;
            Ok(EditPage::new(frame, None, draft).refuse())
        }
    }
}

async fn try_create(pages: &Pages, visitor: &Visitor, form: &Form) -> Result<NewSecret, Error> {
    let create = Create::parse(&members(form))?;
    judge(pages, visitor, &create.url).await?;
    pages.submit(visitor, form, CreateWebhook(create)).await
}

pub async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let (frame, webhook) = find(&pages, &visitor, named(&id, "webhook")?).await?;
    let is_all = webhook.events.kinds().len() == SELECTABLE.len();
    let which = if is_all { ALL } else { SOME };
    let ticks = webhook.events.kinds().iter().map(|kind| ("events", kind.as_str().to_owned()));
    let fields = [
        ("url", webhook.url.clone()),
        ("description", webhook.description.clone()),
        (WHICH, which.to_owned()),
    ];
    let draft = Draft::new(fields.into_iter().chain(ticks));
    Ok(EditPage::new(frame, Some(webhook), draft).respond())
}

pub async fn save(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id: WebhookId = named(&id, "webhook")?;
    match try_save(&pages, &visitor, &form, id).await {
        Ok(webhook) => {
            let path = format!("{PATH}/{}", webhook.id);
            Ok(pages.done(&path, Flash::good("Webhook saved.")))
        }
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            let (frame, webhook) = find(&pages, &visitor, id).await?;
            Ok(EditPage::new(frame, Some(webhook), draft).refuse())
        }
    }
}

async fn try_save(pages: &Pages, visitor: &Visitor, form: &Form, id: WebhookId) -> Result<Webhook, Error> {
    let mut members = members(form);
    // An empty field clears the description.
    members.entry("description").or_insert_with(|| Value::from(""));
    members.entry("url").or_insert_with(|| Value::from(""));
    let patch = Patch::parse(&members)?;
    if let Some(url) = &patch.url {
        judge(pages, visitor, url).await?;
    }
    pages.submit(visitor, form, PatchWebhook { id, patch }).await
}

/// The form as the members that the API takes.
fn members(form: &Form) -> Map<String, Value> {
    let mut members = form.members(&[("url", As::Text), ("description", As::Text), ("events", As::Ticks)]);
    if form.text(WHICH) == ALL {
        members.insert("events".to_owned(), SELECTABLE.iter().map(|kind| kind.as_str()).collect());
    }
    members
}

/// Resolves the destination and refuses it if no attempt would be allowed. Checks the role first.
async fn judge(pages: &Pages, visitor: &Visitor, url: &Destination) -> Result<(), Error> {
    pages.app().read(&visitor.access(), ADMIN, |_, _| Ok(())).await?;
    let judged = pages.app().services().check_destination(url).await;
    judged.map_err(|refusal| {
        let Fault { code, detail } = refused(&refusal);
        Invalid::one("/url", code, detail).into()
    })
}

async fn find(pages: &Pages, visitor: &Visitor, id: WebhookId) -> Result<(Frame, Webhook), Refusal> {
    let found = pages.show(visitor, ADMIN, move |snapshot, _| one(snapshot, id));
    let Shown { frame, reply } = found.await?;
    Ok((frame, reply.ok_or_else(|| Refusal::not_found("webhook"))?))
}
