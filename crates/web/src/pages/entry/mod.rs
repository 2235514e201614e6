//! Pages for people who are not logged in: the first run, login, and links from mails.

mod login;
pub mod setup;
mod stranger;

use axum::Router;

use crate::pages::Pages;

pub fn routes() -> Router<Pages> {
    Router::new().merge(login::routes()).merge(setup::routes()).merge(stranger::routes())
}
