//! Creates or edits a webhook: its URL, description, events, filters and headers. The Preview button shows which of the
//! latest events would be sent, and saves nothing.

use askama::Template;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::read::webhook::{self as read, PREVIEWED, form};
use rapport_app::webhook::{Changes, CreateWebhook, NewSecret, PatchWebhook};
use rapport_domain::channel::Channel;
use rapport_domain::event::Kind;
use rapport_domain::id::WebhookId;
use rapport_domain::pipeline::Status;
use rapport_domain::webhook::{STANDARD, Webhook};
use rapport_domain::webhook_header::Header;

use crate::pages::WEBHOOKS;
use crate::pages::kit::action::Action;
use crate::pages::kit::conditions::{self, FieldRow};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::webhooks::fields::{self, HeaderRow};
use crate::pages::webhooks::preview::{self, Line};
use crate::pages::webhooks::secret::SecretPage;
use crate::pages::webhooks::{meaning, path_of};

#[derive(Template)]
#[template(path = "webhooks/edit.html")]
pub struct EditPage {
    frame: Frame,
    /// The webhook that is edited. None for a new one.
    webhook: Option<Webhook>,
    /// Its headers as stored.
    headers: Vec<Header>,
    channels: Vec<Channel>,
    names: Vec<String>,
    kinds: [(Kind, &'static str); 4],
    more: [(Kind, &'static str); 3],
    draft: Draft,
    rows: Vec<FieldRow>,
    /// Selected channels that were deleted.
    gone: Vec<String>,
    header_rows: Vec<HeaderRow>,
    preview: Option<Vec<Line>>,
}
framed!("webhooks": EditPage);

impl EditPage {
    async fn of<I: Sync>(visit: &Visit<I>, id: Option<WebhookId>) -> Result<Self, Refusal> {
        let found = visit.read(WEBHOOKS, move |snapshot, _| form(snapshot, id));
        let Shown { frame, reply } = found.await?;
        let read::Form { existing, channels, names } = reply.ok_or_else(|| Refusal::not_found("webhook"))?;
        let stored = existing.as_ref().map(|(webhook, choice)| fields::of_webhook(webhook, choice));
        let (webhook, headers) = match existing {
            Some((webhook, choice)) => (Some(webhook), choice.headers),
            None => (None, Vec::new()),
        };
        let described = |kind| (kind, meaning(kind));
        let mut page = Self {
            frame,
            webhook,
            headers,
            channels,
            names,
            kinds: STANDARD.map(described),
            more: Kind::OPT_IN.map(described),
            draft: Draft::default(),
            rows: Vec::new(),
            gone: Vec::new(),
            header_rows: Vec::new(),
            preview: None,
        };
        let stored = stored.unwrap_or_else(fields::blank);
        let draft = Draft::new(stored.fields().map(|(name, value)| (name, value.to_owned())));
        page.fill(&stored, draft);
        Ok(page)
    }

    /// Shows what a form says.
    fn fill(&mut self, form: &Form, draft: Draft) {
        self.rows = conditions::rows_to_fill(form);
        self.gone = conditions::gone(form, &self.channels);
        self.header_rows = fields::header_rows(form, &self.headers);
        self.draft = draft;
    }

    /// Where the Preview button sends the form. Not in the address, which may end up in logs: the form can have secrets.
    fn preview_path(&self) -> String {
        self.webhook
            .as_ref()
            .map_or_else(|| "/webhooks/preview".to_owned(), |one| path_of(one.id) + "/preview")
    }
}

/// The form of a new webhook.
impl Load<()> for EditPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        Self::of(visit, None).await
    }
}

/// The form of an existing webhook.
impl Load<WebhookId> for EditPage {
    async fn load(visit: &Visit<WebhookId>) -> Result<Self, Refusal> {
        Self::of(visit, Some(visit.id)).await
    }
}

pub async fn create(action: Action) -> Result<Response, Refusal> {
    let made = try_create(&action).await;
    let form = action.form.clone();
    let made = action.settle(made, move |page: &mut EditPage, draft| page.fill(&form, draft)).await?;
    Ok(SecretPage::made(action.frame(WEBHOOKS).await?, made.webhook, made.secret).respond())
}

async fn try_create(action: &Action) -> Result<NewSecret, Error> {
    let create = fields::create(&action.form)?;
    verify(action).await?;
    let command = CreateWebhook::checked(action.pages.app().services(), create).await?;
    action.submit(command).await
}

pub async fn save(action: Action<WebhookId>) -> Result<Response, Refusal> {
    let saved = try_save(&action).await;
    let form = action.form.clone();
    action.settle(saved, move |page: &mut EditPage, draft| page.fill(&form, draft)).await?;
    action.done(&path_of(action.id), "Webhook saved.")
}

async fn try_save(action: &Action<WebhookId>) -> Result<Webhook, Error> {
    let patch = fields::patch(&action.form)?;
    verify(action).await?;
    let changes = Changes::checked(action.pages.app().services(), patch).await?;
    action.submit(PatchWebhook { id: action.id, changes }).await
}

/// The form of a new webhook again, with a preview.
pub async fn preview_new(action: Action) -> Result<Response, Refusal> {
    let page = <EditPage as Load<()>>::load(&action).await?;
    show_preview(action, page).await
}

/// The form of an existing webhook again, with a preview.
pub async fn preview_existing(action: Action<WebhookId>) -> Result<Response, Refusal> {
    let page = <EditPage as Load<WebhookId>>::load(&action).await?;
    show_preview(action, page).await
}

async fn show_preview<I: Send + Sync>(action: Action<I>, mut page: EditPage) -> Result<Response, Refusal> {
    let (selection, filter) = match fields::selected(&action.form) {
        Ok(selected) => selected,
        Err(invalid) => {
            let draft = action.refused(invalid.into()).await?;
            page.fill(&action.form, draft);
            return Ok(page.refuse());
        }
    };
    let judged = action.read(WEBHOOKS, move |snapshot, _| read::preview(snapshot, &selection, &filter));
    let Shown { reply, .. } = judged.await?;
    let draft = Draft::new(action.form.fields().map(|(name, value)| (name, value.to_owned())));
    page.fill(&action.form, draft);
    page.preview = Some(preview::lines(reply));
    Ok(page.respond())
}

/// Checks the right before a destination is checked, so that only those who manage webhooks can have names resolved.
async fn verify<I>(visit: &Visit<I>) -> Result<(), Error> {
    visit.pages.app().read(&visit.visitor.access(), WEBHOOKS, |_, _| Ok(())).await?;
    Ok(())
}
