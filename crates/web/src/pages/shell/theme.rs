//! The theme: light or dark, or that of the system.

use axum::Router;
use axum::extract::State;
use axum::http::header::{HeaderMap, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;

use crate::pages::Pages;
use crate::pages::kit::cookie::{self, Keep};
use crate::pages::kit::form::Form;
use crate::pages::kit::origin::own_path;

const NAME: &str = "theme";
const KEPT_DAYS: i64 = 365;

pub fn routes() -> Router<Pages> {
    Router::new().route("/theme", post(choose))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }

    fn parse(text: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.as_str() == text).unwrap_or_default()
    }

    pub fn read(headers: &HeaderMap) -> Self {
        cookie::read(headers, NAME).map_or(Self::System, Self::parse)
    }
}

async fn choose(State(pages): State<Pages>, form: Form) -> Response {
    let theme = Theme::parse(form.text("theme"));
    let mut response = Redirect::to(&own_path(form.text("next"))).into_response();
    let cookie = cookie::write(NAME, theme.as_str(), Keep::Days(KEPT_DAYS), pages.is_secure());
    response.headers_mut().append(SET_COOKIE, cookie);
    response
}
