//! Lists, creates and revokes API tokens. A new token is shown once.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::credential::{CreateToken, NewCredential, RevokeToken};
use rapport_app::read::credential;
use rapport_domain::credential::{Credential, TokenRequest};
use rapport_domain::id::CredentialId;
use rapport_domain::invalid::Invalid;

use super::{back_to, roles_up_to, stretch, tabbed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{ADMIN, Pages};

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
    tokens: Vec<Credential>,
    next: Option<CredentialId>,
    roles: Vec<(&'static str, &'static str)>,
    draft: Draft,
    made: Option<NewCredential>,
}
framed!("settings": TokensPage);
tabbed!("tokens": TokensPage);

impl<I: Sync> Load<I> for TokensPage {
    async fn load(visit: &Visit<I>) -> Result<Self, Refusal> {
        let after = visit.query.text("after").parse().ok();
        let found = visit.read(ADMIN, |snapshot, _| credential::tokens(snapshot));
        let Shown { frame, reply: tokens } = found.await?;
        let (tokens, next) = stretch(tokens, |token| token.id, after.as_ref());
        let roles = roles_up_to(frame.role);
        Ok(Self { frame, tokens, next, roles, draft: Draft::default(), made: None })
    }
}

async fn create(action: Action) -> Result<Response, Refusal> {
    let made = action.run(read(&action.form), |page: &mut TokensPage, draft| page.draft = draft).await?;
    let page = TokensPage::load(&action).await?;
    Ok(TokensPage { made: Some(made), ..page }.respond())
}

fn read(form: &Form) -> Result<CreateToken, Invalid> {
    let members = form.members(&[("name", As::Text), ("role", As::Text)]);
    TokenRequest::parse(&members).map(|TokenRequest { name, role }| CreateToken { name, role })
}

async fn revoke(action: Action<CredentialId>) -> Result<Response, Refusal> {
    action.act::<TokensPage, _>(RevokeToken(action.id)).await?;
    action.done(PATH, "Token revoked. It no longer works.")
}
