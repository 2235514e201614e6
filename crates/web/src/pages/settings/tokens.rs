//! Lists, creates and revokes API tokens. A new token is shown once.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::credential::{CreateToken, NewCredential, RevokeToken};
use rapport_app::read::credential;
use rapport_domain::company::MAX_NAME;
use rapport_domain::credential::Credential;
use rapport_domain::id::CredentialId;
use rapport_domain::invalid::{Invalid, Members, as_str, as_text};
use rapport_domain::member::Role;

use super::{back_to, roles_up_to, stretch, tabbed};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

const PATH: &str = "/settings/tokens";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show).post(create))
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

impl TokensPage {
    async fn load(pages: &Pages, visitor: &Visitor, after: Option<CredentialId>) -> Result<Self, Refusal> {
        let found = pages.show(visitor, ADMIN, |snapshot, _| credential::tokens(snapshot));
        let Shown { frame, reply: tokens } = found.await?;
        let (tokens, next) = stretch(tokens, |token| token.id, after.as_ref());
        let roles = roles_up_to(frame.role);
        Ok(Self { frame, tokens, next, roles, draft: Draft::default(), made: None })
    }
}

async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let after = Form::of_query(query.as_deref()).text("after").parse().ok();
    Ok(TokensPage::load(&pages, &visitor, after).await?.respond())
}

async fn create(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let made = match read(&form) {
        Ok(command) => pages.submit(&visitor, &form, command).await,
        Err(invalid) => Err(invalid.into()),
    };
    match made {
        Ok(made) => {
            let page = TokensPage::load(&pages, &visitor, None).await?;
            Ok(TokensPage { made: Some(made), ..page }.respond())
        }
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            Ok(TokensPage { draft, ..TokensPage::load(&pages, &visitor, None).await? }.refuse())
        }
    }
}

fn read(form: &Form) -> Result<CreateToken, Invalid> {
    let members = form.members(&[("name", As::Text), ("role", As::Text)]);
    let mut members = Members::of(&members);
    let name = members.required("name", |value| as_text(value, MAX_NAME));
    let role = members.required("role", |value| Role::parse(as_str(value)?));
    members.finish()?;
    Ok(CreateToken { name: name.unwrap_or_default(), role: role.unwrap_or(Role::Member) })
}

async fn revoke(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = id.parse().map_err(|_| Refusal::not_found("token"))?;
    let revoked = pages.submit(&visitor, &form, RevokeToken(id)).await;
    revoked.map_err(|error| visitor.refused(error))?;
    Ok(pages.done(PATH, Flash::good("Token revoked. It no longer works.")))
}
