//! Lists, creates and revokes API tokens. A new token is shown once. It belongs to the company or to a member.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rapport_app::credential::{CreateToken, NewCredential, RevokeToken};
use rapport_app::read::credential::{self, Token};
use rapport_domain::credential::TokenRequest;
use rapport_domain::id::CredentialId;
use rapport_domain::invalid::Invalid;
use rapport_domain::member::Member;
use rapport_domain::time::Time;
use serde_json::Value;

use super::{back_to, role_draft, roles_up_to, stretch, tabbed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{KEYS, Pages};

const PATH: &str = "/settings/tokens";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<TokensPage, ()>).post(create))
        .route("/settings/tokens/{id}/revoke", post(revoke).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/tokens.html")]
struct TokensPage {
    frame: Frame,
    tokens: Vec<Token>,
    next: Option<CredentialId>,
    roles: Vec<(&'static str, &'static str)>,
    /// Who a new token can belong to.
    owners: Vec<(String, String)>,
    draft: Draft,
    made: Option<NewCredential>,
}
framed!("settings": TokensPage);
tabbed!("tokens": TokensPage);

impl<I: Sync> Load<I> for TokensPage {
    async fn load(visit: &Visit<I>) -> Result<Self, Refusal> {
        let after = visit.query.text("after").parse().ok();
        let Shown { frame, reply: (tokens, members) } = visit.read(KEYS, credential::page).await?;
        let (tokens, next) = stretch(tokens, |token| token.credential.id, after.as_ref());
        let roles = roles_up_to(frame.role);
        let owner = |member: Member| {
            let own = if member.person == frame.person { " (you)" } else { "" };
            (member.person.to_string(), format!("{}{own}", member.name))
        };
        let company = (String::new(), "The company".to_owned());
        let owners = std::iter::once(company).chain(members.into_iter().map(owner)).collect();
        Ok(Self { frame, tokens, next, roles, owners, draft: role_draft(), made: None })
    }
}

async fn create(action: Action) -> Result<Response, Refusal> {
    let frame = action.frame(KEYS).await?;
    let command = read(&action.form, frame.zone());
    let made = action.run(command, |page: &mut TokensPage, draft| page.draft = draft).await?;
    let page = TokensPage::load(&action).await?;
    Ok(TokensPage { made: Some(made), ..page }.respond())
}

/// A token expires when its last day is over in the company's time zone.
fn read(form: &Form, zone: &TimeZone) -> Result<CreateToken, Invalid> {
    let fields = [
        ("name", As::Text),
        ("role", As::Text),
        ("owner", As::Text),
        ("expires_at", As::Text),
        ("rate_limit", As::Number),
    ];
    let mut members = form.members(&fields);
    let last_day = form.given("expires_at").and_then(|text| text.parse::<Date>().ok());
    if let Some(day_after) = last_day.and_then(|day| day.tomorrow().ok()) {
        let end = Time::start_of_day(day_after, zone);
        members.insert("expires_at".to_owned(), Value::from(end.to_string()));
    }
    TokenRequest::parse(&members).map(CreateToken)
}

async fn revoke(action: Action<CredentialId>) -> Result<Response, Refusal> {
    action.act::<TokensPage, _>(RevokeToken(action.id)).await?;
    action.done(PATH, "Token revoked. It no longer works.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_until_its_last_day_is_over() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let read = |form: &[u8]| {
            let read = read(&Form::parse(form), &zone).map(|CreateToken(request)| request.expires_at);
            read.map_err(|invalid| invalid.0[0].pointer.clone())
        };
        let end = Time::parse("2027-01-31T23:00:00Z").unwrap();
        let table: [(&[u8], _); 3] = [
            (b"name=x&expires_at=2027-01-31", Ok(Some(end))),
            (b"name=x&expires_at=&owner=", Ok(None)),
            (b"name=x&expires_at=soon", Err("/expires_at".to_owned())),
        ];
        for (form, expected) in table {
            assert_eq!(read(form), expected, "{}", String::from_utf8_lossy(form));
        }
    }
}
