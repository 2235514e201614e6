//! The audit log: who did what, when and from where; and the log as a file.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use rapport_app::Answer;
use rapport_app::export::{Exported, RecordExport};
use rapport_app::read::Page;
use rapport_app::read::audit::{LogPage, filter, log_page};
use rapport_domain::audit::{Action, Filter, groups};
use rapport_domain::file_format::Format;
use rapport_domain::id::AuditId;
use rapport_domain::member::Member;
use rapport_domain::time::Time;
use serde_json::{Map, Value};

use super::audit_words::{Line, sentence};
use super::tabbed;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::words::when::local;
use crate::pages::{AUDIT, Pages};
use crate::shared::audit::{Extent, respond};

const PATH: &str = "/settings/audit";
/// The filter, as the API names it. The page hides logins unless they are asked for.
const NAMES: [&str; 5] = ["person", "action", "from", "to", "logins"];

pub fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route("/settings/audit/export", get(export))
}

#[derive(Template)]
#[template(path = "settings/audit.html")]
struct AuditPage {
    frame: Frame,
    draft: Draft,
    filter: Filter,
    query: String,
    people: Vec<(String, String)>,
    lines: Vec<Line>,
    older: Option<String>,
    is_first: bool,
}
framed!("settings": AuditPage);
tabbed!("audit": AuditPage);

impl AuditPage {
    fn is_filtered(&self) -> bool {
        let Filter { person, action, from, to, .. } = self.filter;
        person.is_some() || action.is_some() || from.is_some() || to.is_some() || self.draft.has_faults()
    }

    /// The groups of actions, each with its name.
    #[expect(clippy::unused_self, reason = "templates call it on the page")]
    fn groups(&self) -> Vec<(&'static str, String, Vec<Action>)> {
        let of = |group| Action::ALL.iter().copied().filter(|action| action.group() == group).collect();
        groups().into_iter().map(|group| (group, sentence(group), of(group))).collect()
    }

    fn from(&self) -> String {
        self.time("from", self.filter.from)
    }

    fn to(&self) -> String {
        self.time("to", self.filter.to)
    }

    fn time(&self, name: &str, time: Option<Time>) -> String {
        time.map_or_else(|| self.draft.value(name).to_owned(), |time| local(time, self.frame.zone()))
    }
}

async fn show(visit: Visit) -> Result<Response, Refusal> {
    let form = &visit.query;
    let before: Option<AuditId> = form.text("before").parse().ok();
    let typed = typed(form);
    let found = visit.read(AUDIT, move |snapshot, viewer| log_page(snapshot, viewer, typed, before));
    let Shown { frame, reply: LogPage { filter, entries, members } } = found.await?;
    let Page { items, more } = entries;
    let draft = match filter.as_ref().err().cloned() {
        Some(invalid) => {
            Draft::refused(form, invalid.into()).map_err(|error| visit.visitor.refused(error))?
        }
        None => Draft::new(form.fields().map(|(name, value)| (name, value.to_owned()))),
    };
    let has_faults = draft.has_faults();
    let filter = filter.unwrap_or_default();
    let older = items.last().filter(|_| more).map(|last| query(form, &[("before", &last.id.to_string())]));
    let page = AuditPage {
        people: people(&members, form.given("person")),
        lines: items.into_iter().map(|entry| Line::of(entry, &members)).collect(),
        frame,
        draft,
        filter,
        query: query(form, &[]),
        older,
        is_first: before.is_none(),
    };
    Ok(if has_faults { page.refuse() } else { page.respond() })
}

async fn export(visit: Visit) -> Result<Response, Refusal> {
    let form = &visit.query;
    let format = form.format(Format::Csv)?;
    let (access, typed) = (visit.visitor.access(), typed(form));
    let found = visit.pages.app().read(&access, AUDIT, move |snapshot, viewer| match filter(viewer, typed) {
        Ok(filter) => Extent { filter, format }.begin(snapshot).map(Ok),
        Err(invalid) => Ok(Err(invalid)),
    });
    let Answer { reply, company, now } = found.await.map_err(|error| visit.visitor.refused(error))?;
    let begun = Answer { reply: reply?, company, now };
    let what = Exported::Audit;
    visit.write(RecordExport { what, format: format.as_str(), filter: query(form, &[]) }).await?;
    Ok(respond(visit.pages.app(), access, begun))
}

/// The filter as it was typed. Someone who asks for a certain action wants to see it.
fn typed(form: &Form) -> Map<String, Value> {
    let given = NAMES.into_iter().filter_map(|name| form.given(name).map(|text| (name, text)));
    let mut typed: Map<String, Value> =
        given.map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
    let shows_logins = form.given("logins").is_some() || form.given("action").is_some();
    typed.insert("logins".to_owned(), Value::from(shows_logins));
    typed
}

/// The filter as a query string, followed by more fields.
fn query(form: &Form, more: &[(&str, &str)]) -> String {
    let given = NAMES.into_iter().filter_map(|name| form.given(name).map(|text| (name, text)));
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(given).extend_pairs(more);
    query.finish()
}

/// The people to choose from: the members, and the chosen person if they are no longer one.
fn people(members: &[Member], chosen: Option<&str>) -> Vec<(String, String)> {
    let mut people: Vec<(String, String)> =
        members.iter().map(|member| (member.person.to_string(), member.name.clone())).collect();
    if let Some(id) = chosen.filter(|id| people.iter().all(|(known, _)| known != id)) {
        people.push((id.to_owned(), id.to_owned()));
    }
    people
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_hidden_unless_they_are_asked_for() {
        for (query, shown) in
            [("", false), ("person=per_1&from=", false), ("logins=true", true), ("action=session", true)]
        {
            assert_eq!(typed(&Form::of_query(Some(query)))["logins"], Value::from(shown), "{query}");
        }
    }

    #[test]
    fn links_keep_the_filter() {
        let form = Form::of_query(Some("action=a.b&person=&from=2026-01-05T08%3A00&before=x&other=1"));
        assert_eq!(query(&form, &[("before", "y")]), "action=a.b&from=2026-01-05T08%3A00&before=y");
    }
}
