//! The log of deliveries, newest first. Its first page updates live.

use askama::Template;
use axum::response::Response;
use rapport_app::read::delivery::{LogPage, log_page};
use rapport_domain::delivery::HISTORY_DAYS;
use rapport_domain::delivery_list::{Filter, Shown as DeliveryState};
use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, DeliveryId};
use rapport_domain::invalid::Invalid;
use rapport_domain::webhook::Webhook;

use crate::pages::WEBHOOKS;
use crate::pages::deliveries::filter::{self, state_name};
use crate::pages::deliveries::row::Row;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::words::when::local;

const ACCOUNT: &str = "/account";

#[derive(Template)]
#[template(path = "deliveries/list.html")]
struct ListPage {
    frame: Frame,
    draft: Draft,
    filter: Filter,
    is_first: bool,
    webhooks: Vec<Webhook>,
    account: Option<String>,
    /// The accounts to choose from, if several have that name, each with its address.
    candidates: Vec<(String, String)>,
    rows: Vec<Row>,
    next: Option<String>,
}
framed!("webhooks": ListPage);

impl ListPage {
    fn is_filtered(&self) -> bool {
        self.filter != Filter::default()
    }

    #[expect(clippy::unused_self, reason = "templates call it on the page")]
    fn states(&self) -> [(&'static str, &'static str); 4] {
        DeliveryState::ALL.map(|state| (state.as_str(), state_name(state)))
    }

    #[expect(clippy::unused_self, reason = "templates call it on the page")]
    fn kinds(&self) -> [Kind; 8] {
        Kind::ALL
    }

    /// Whether the filter has this value, compared in canonical form.
    fn has(&self, name: &str, value: &str) -> bool {
        self.draft.has(name, value)
    }

    fn query(&self) -> String {
        filter::query(&self.filter, &[])
    }

    fn since(&self) -> String {
        self.filter.since.map_or_else(|| self.draft.value("since").to_owned(), |time| self.local(time))
    }

    fn until(&self) -> String {
        self.filter.until.map_or_else(|| self.draft.value("until").to_owned(), |time| self.local(time))
    }

    fn local(&self, time: rapport_domain::time::Time) -> String {
        local(time, self.frame.zone())
    }
}

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let form = &visit.query;
    let before: Option<DeliveryId> = form.text("before").parse().ok();
    let typed = filter::typed(form);
    let found = visit.read(WEBHOOKS, move |snapshot, viewer| log_page(snapshot, viewer, typed, before));
    let Shown { frame, reply } = found.await?;
    let LogPage { filter, webhooks, account, candidates, rows, next } = reply;
    let draft = Draft::new(form.fields().map(|(name, value)| (name, value.to_owned())));
    let draft = match filter.as_ref().err().cloned().and_then(|invalid| unanswered(invalid, &candidates)) {
        Some(invalid) => {
            Draft::refused(form, invalid.into()).map_err(|error| visit.visitor.refused(error))?
        }
        None => draft,
    };
    let candidates = candidates.into_iter().map(|(id, name)| (with_account(form, &id.to_string()), name));
    let has_faults = draft.has_faults();
    let filter = filter.unwrap_or_default();
    let next = next.map(|next| filter::query(&filter, &[("before", &next.to_string())]));
    let is_first = before.is_none();
    let rows = rows.into_iter().map(Row::from).collect();
    let candidates = candidates.collect();
    let page = ListPage { frame, draft, filter, is_first, webhooks, account, candidates, rows, next };
    Ok(if has_faults { page.refuse() } else { page.respond() })
}

/// The faults that the page doesn't answer by offering accounts to choose from. On the page, an account may be named.
fn unanswered(Invalid(mut errors): Invalid, candidates: &[(AccountId, String)]) -> Option<Invalid> {
    errors.retain(|error| error.pointer != ACCOUNT || candidates.is_empty());
    for error in errors.iter_mut().filter(|error| error.pointer == ACCOUNT) {
        "must be the name or the id of an account".clone_into(&mut error.detail);
    }
    (!errors.is_empty()).then_some(Invalid(errors))
}

/// The address of the log with another account in its filter.
fn with_account(form: &Form, account: &str) -> String {
    let mut typed = filter::typed(form);
    typed.insert("account".to_owned(), account.into());
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(typed.iter().filter_map(|(name, value)| Some((name, value.as_str()?))));
    format!("/deliveries?{}", query.finish())
}
