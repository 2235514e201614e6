//! Creates or edits a webhook: its URL, description and events.

use askama::Template;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::read::webhook::one;
use rapport_app::webhook::{Changes, CreateWebhook, NewSecret, PatchWebhook};
use rapport_domain::event::Kind;
use rapport_domain::id::WebhookId;
use rapport_domain::webhook::{Create, Patch, SELECTABLE, Webhook};
use serde_json::{Map, Value};

use crate::pages::WEBHOOKS;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::webhooks::secret::SecretPage;
use crate::pages::webhooks::{meaning, path_of};

/// The field that selects all events or only the ticked ones.
const WHICH: &str = "which";
const ALL: &str = "all";
const SOME: &str = "some";

#[derive(Template)]
#[template(path = "webhooks/edit.html")]
pub struct EditPage {
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

/// The form of a new webhook.
impl Load<()> for EditPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        Ok(Self::new(visit.frame(WEBHOOKS).await?, None, Draft::new([(WHICH, ALL.to_owned())])))
    }
}

/// The form of an existing webhook.
impl Load<WebhookId> for EditPage {
    async fn load(visit: &Visit<WebhookId>) -> Result<Self, Refusal> {
        let id = visit.id;
        let Shown { frame, reply } = visit.read(WEBHOOKS, move |snapshot, _| one(snapshot, id)).await?;
        let webhook = reply.ok_or_else(|| Refusal::not_found("webhook"))?;
        let is_all = webhook.events.kinds().len() == SELECTABLE.len();
        let which = if is_all { ALL } else { SOME };
        let ticks = webhook.events.kinds().iter().map(|kind| ("events", kind.as_str().to_owned()));
        let fields = [
            ("url", webhook.url.clone()),
            ("description", webhook.description.clone()),
            (WHICH, which.to_owned()),
        ];
        let draft = Draft::new(fields.into_iter().chain(ticks));
        Ok(Self::new(frame, Some(webhook), draft))
    }
}

pub async fn create(action: Action) -> Result<Response, Refusal> {
    let made = try_create(&action).await;
    let made = action.settle(made, |page: &mut EditPage, draft| page.draft = draft).await?;
    Ok(SecretPage::made(action.frame(WEBHOOKS).await?, made.webhook, made.secret).respond())
}

async fn try_create(action: &Action) -> Result<NewSecret, Error> {
    let create = Create::parse(&members(&action.form))?;
    verify(action).await?;
    let command = CreateWebhook::checked(action.pages.app().services(), create).await?;
    action.submit(command).await
}

pub async fn save(action: Action<WebhookId>) -> Result<Response, Refusal> {
    let saved = try_save(&action).await;
    action.settle(saved, |page: &mut EditPage, draft| page.draft = draft).await?;
    action.done(&path_of(action.id), "Webhook saved.")
}

async fn try_save(action: &Action<WebhookId>) -> Result<Webhook, Error> {
    let mut members = members(&action.form);
    // An empty field clears the description.
    members.entry("description").or_insert_with(|| Value::from(""));
    members.entry("url").or_insert_with(|| Value::from(""));
    let patch = Patch::parse(&members)?;
    verify(action).await?;
    let changes = Changes::checked(action.pages.app().services(), patch).await?;
    action.submit(PatchWebhook { id: action.id, changes }).await
}

/// The form as the members that the API takes.
fn members(form: &Form) -> Map<String, Value> {
    let mut members = form.members(&[("url", As::Text), ("description", As::Text), ("events", As::Ticks)]);
    if form.text(WHICH) == ALL {
        members.insert("events".to_owned(), SELECTABLE.iter().map(|kind| kind.as_str()).collect());
    }
    members
}

/// Checks the right before a destination is checked, so that only those who manage webhooks can have names resolved.
async fn verify<I>(visit: &Visit<I>) -> Result<(), Error> {
    visit.pages.app().read(&visit.visitor.access(), WEBHOOKS, |_, _| Ok(())).await?;
    Ok(())
}
