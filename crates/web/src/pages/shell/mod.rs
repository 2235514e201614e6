//! What surrounds the pages in a browser: the stylesheet and the script, news of changes, the palette, the theme.

pub mod assets;
mod live;
mod palette;
pub mod streams;
pub mod theme;

use axum::Router;

use crate::pages::Pages;

pub fn routes() -> Router<Pages> {
    Router::new().merge(live::routes()).merge(palette::routes()).merge(theme::routes())
}
