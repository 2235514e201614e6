//! Pages for people who are not logged in: the first run, login with its second step or with single sign-on, and links
//! from mails.

mod login;
mod passkey;
mod second;
pub mod setup;
mod sso;
mod stranger;

use axum::Router;

use crate::pages::Pages;

pub use sso::confirm_path;

pub fn routes() -> Router<Pages> {
    Router::new()
        .merge(login::routes())
        .merge(passkey::routes())
        .merge(second::routes())
        .merge(sso::routes())
        .merge(setup::routes())
        .merge(stranger::routes())
}
