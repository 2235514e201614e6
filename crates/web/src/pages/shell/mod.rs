//! What surrounds the pages in a browser: the stylesheet and the script, the guide, news of changes, the palette, the
//! theme.

pub mod assets;
pub mod guide;
mod live;
mod palette;
pub mod streams;
pub mod theme;

use axum::Router;

use crate::pages::Pages;

pub fn routes() -> Router<Pages> {
    Router::new().merge(guide::routes()).merge(live::routes()).merge(palette::routes()).merge(theme::routes())
}
