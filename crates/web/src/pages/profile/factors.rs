//! The forms on the profile page that rename and remove second factors.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use rapport_app::passkey::{RemovePasskey, RenamePasskey};
use rapport_app::totp::RemoveApp;
use rapport_domain::id::PasskeyId;
use rapport_domain::second_factor::parse_passkey_name;

use super::{PATH, ProfilePage};
use crate::pages::Pages;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::form::As;
use crate::pages::kit::refusal::Refusal;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/profile/passkeys/{id}/name", post(rename))
        .route("/profile/passkeys/{id}/remove", post(remove_passkey))
        .route("/profile/app/remove", post(remove_app))
}

async fn rename(action: Action<PasskeyId>) -> Result<Response, Refusal> {
    let name = parse_passkey_name(&action.form.members(&[("name", As::Text)]));
    let command = name.map(|name| RenamePasskey { id: action.id, name });
    action.run(command, banner::<ProfilePage>).await?;
    action.done(PATH, "Passkey renamed.")
}

async fn remove_passkey(action: Action<PasskeyId>) -> Result<Response, Refusal> {
    let command = RemovePasskey { id: action.id, kept: action.visitor.session };
    action.act::<ProfilePage, _>(command).await?;
    action.done(PATH, "Passkey removed. Your other sessions are logged out.")
}

async fn remove_app(action: Action) -> Result<Response, Refusal> {
    action.act::<ProfilePage, _>(RemoveApp { kept: action.visitor.session }).await?;
    action.done(PATH, "Authenticator app removed. Your other sessions are logged out.")
}
