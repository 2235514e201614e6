//! The frame of every page: the navigation, who is logged in, and the flash.

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::Response;
use jiff::tz::TimeZone;
use rapport_app::read::frame::Counts;
use rapport_app::{Caller, Found, Outside, Services, Viewer};
use rapport_domain::company::Company;
use rapport_domain::history::Actor;
use rapport_domain::id::{FormId, PersonId};
use rapport_domain::member::Role;
use rapport_domain::right::Right;
use rapport_domain::time::Time;

use crate::edge::problem::{Fault, Problem};
use crate::pages::Pages;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::visitor::{Look, Stranger, Visitor};
use crate::pages::shell::theme::Theme;
use crate::pages::words::when::When;

/// Allows only our own stylesheet, script, typeface and images, nothing inline, forms to ourselves, and no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                      base-uri 'none'";

/// The data of a page, with its frame.
pub struct Shown<T> {
    pub frame: Frame,
    pub reply: T,
}

/// The frame for a person who is logged in.
#[derive(Clone)]
pub struct Frame {
    pub company: Company,
    pub person: PersonId,
    pub name: String,
    pub role: Role,
    /// The person also works in other companies.
    pub has_others: bool,
    /// Whether single sign-on began the session, which then works for this company only.
    pub by_sso: bool,
    pub counts: Counts,
    pub look: Look,
    pub now: Time,
    pub is_secure: bool,
    /// What the page was read from. The script learns from it whether something has changed since.
    pub version: String,
    /// Why a button of this page did nothing.
    pub refused: Draft,
    services: Arc<Services>,
}

impl Frame {
    pub fn around<T>(found: Found<(Counts, T)>, visitor: &Visitor, pages: &Pages) -> Shown<T> {
        let Found { reply: (counts, reply), viewer: Viewer { caller, now } } = found;
        let Caller { company, actor, role, companies, by_sso, .. } = caller;
        let (person, name) = match actor {
            Actor::Person { id, name } => (id, name),
            other => (PersonId::from_bytes([0; 16]), other.kind().to_owned()),
        };
        let frame = Self {
            company,
            person,
            name,
            role,
            has_others: companies > 1,
            by_sso,
            counts,
            look: visitor.look.clone(),
            now,
            is_secure: pages.is_secure(),
            version: String::new(),
            refused: Draft::default(),
            services: Arc::clone(pages.app().services()),
        };
        Shown { frame, reply }
    }

    /// A new form id, for the hidden field of a form.
    pub fn form(&self) -> FormId {
        self.services.id(self.now)
    }

    /// Whether the visitor has a right. What they may not do isn't offered to them.
    pub fn may(&self, right: Right) -> bool {
        right.is_held_by(self.role, self.company.settings.grants)
    }

    pub fn may_work(&self) -> bool {
        self.may(Right::Work)
    }

    pub fn may_export(&self) -> bool {
        self.may(Right::Export)
    }

    pub fn may_delete(&self) -> bool {
        self.may(Right::Delete)
    }

    pub fn may_export_account(&self) -> bool {
        self.may(Right::AccountData)
    }

    pub fn may_import(&self) -> bool {
        self.may(Right::Import)
    }

    pub fn may_change_channels(&self) -> bool {
        self.may(Right::Channels)
    }

    pub fn may_manage_webhooks(&self) -> bool {
        self.may(Right::Webhooks)
    }

    pub fn may_manage_keys(&self) -> bool {
        self.may(Right::Keys)
    }

    pub fn may_change_settings(&self) -> bool {
        self.may(Right::Settings)
    }

    pub fn may_set_up_sso(&self) -> bool {
        self.may(Right::Sso)
    }

    pub fn is_owner(&self) -> bool {
        self.role == Role::Owner
    }

    /// A day in the company's time zone, written out.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    pub fn day(&self, time: &Time) -> String {
        time.day_in(self.zone()).date().strftime("%-d %B %Y").to_string()
    }

    pub fn zone(&self) -> &TimeZone {
        &self.company.settings.time_zone
    }

    /// How the service is reached, and whether it can send mail.
    pub fn outside(&self) -> &Outside {
        self.services.outside()
    }

    /// A relative time, with the exact time on hover.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    pub fn when(&self, time: &Time) -> When {
        When::new(*time, self.now, self.zone())
    }

    pub fn theme(&self) -> Theme {
        self.look.theme
    }
}

/// A page in the frame.
pub trait Page: Template + Sized {
    fn frame(&self) -> &Frame;

    fn frame_mut(&mut self) -> &mut Frame;

    fn respond(&self) -> Response {
        self.respond_with(StatusCode::OK)
    }

    /// Shows a form again with its faults.
    fn refuse(&self) -> Response {
        self.respond_with(StatusCode::UNPROCESSABLE_ENTITY)
    }

    fn respond_with(&self, status: StatusCode) -> Response {
        let frame = self.frame();
        let mut response = html(status, self.render());
        if frame.look.flash.is_some() {
            response.headers_mut().append(header::SET_COOKIE, Flash::shown(frame.is_secure));
        }
        response
    }
}

/// Implements `Page` for templates with a field `frame`, given their place in the navigation.
macro_rules! framed {
    ($here:literal: $($page:ty),+ $(,)?) => {$(
        impl $page {
            const fn here(&self) -> &'static str {
                $here
            }
        }

        impl $crate::pages::kit::frame::Page for $page {
            fn frame(&self) -> &$crate::pages::kit::frame::Frame {
                &self.frame
            }

            fn frame_mut(&mut self) -> &mut $crate::pages::kit::frame::Frame {
                &mut self.frame
            }
        }
    )+};
}
pub(in crate::pages) use framed;

/// The name of a place in the navigation that has no button of its own in the bar of a phone; empty for those that do.
pub fn other_place(here: &str) -> &'static str {
    match here {
        "campaigns" => "Campaigns",
        "channels" => "Channels",
        "webhooks" => "Webhooks",
        "ingest" => "Ingest",
        "imports" => "Import",
        "settings" => "Settings",
        "profile" => "Profile",
        "api" => "API",
        _ => "",
    }
}

/// The frame for a person who is not logged in, or not yet in a company.
#[derive(Clone, Default)]
pub struct PlainFrame {
    pub look: Look,
    services: Option<(Arc<Services>, Time)>,
}

impl PlainFrame {
    pub fn new(stranger: &Stranger, pages: &Pages) -> Self {
        Self::of(&stranger.look, pages)
    }

    /// For a page about a person's login, which belongs to no company.
    pub fn of(look: &Look, pages: &Pages) -> Self {
        let services = Arc::clone(pages.app().services());
        let now = services.now();
        Self { look: look.clone(), services: Some((services, now)) }
    }

    pub fn form(&self) -> String {
        let id = self.services.as_ref().map(|(services, now)| services.id::<FormId>(*now));
        id.map_or_else(String::new, |id| id.to_string())
    }

    pub fn theme(&self) -> Theme {
        self.look.theme
    }
}

/// A rendered page as a response.
pub fn html(status: StatusCode, rendered: askama::Result<String>) -> Response {
    let text = match rendered {
        Ok(text) => text,
        Err(error) => {
            let mut response =
                axum::response::IntoResponse::into_response(Problem::internal(error.to_string()));
            response.extensions_mut().insert(Fault(error.to_string()));
            return response;
        }
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    write_headers(response.headers_mut());
    response
}

pub fn write_headers(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers
        .insert("permissions-policy", HeaderValue::from_static("camera=(), geolocation=(), microphone=()"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
}
