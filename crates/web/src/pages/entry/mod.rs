//! Pages for people who are not logged in: the first run, login with its second step, and links from mails.

mod login;
mod passkey;
mod second;
pub mod setup;
mod stranger;

use axum::Router;

use crate::pages::Pages;

pub fn routes() -> Router<Pages> {
    Router::new()
        .merge(login::routes())
        .merge(passkey::routes())
        .merge(second::routes())
        .merge(setup::routes())
        .merge(stranger::routes())
}
