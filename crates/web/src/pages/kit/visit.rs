//! A request for a page: who asks, what it is about, and its query. And pages that can be loaded for one.

use std::future::Future;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use rapport_app::read::factors::{self, Holder};
use rapport_app::{Answer, Command, Needs, Viewer};
use rapport_store::{Error, Snapshot};

use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Page, Shown};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{LOGIN, Pages};
use crate::shared::full_export::{Wanted, respond};
use crate::shared::subject::{InPath, in_path};

pub struct Visit<I = ()> {
    pub pages: Pages,
    pub visitor: Visitor,
    /// What the address is about.
    pub id: I,
    pub query: Form,
}

impl<I> Visit<I> {
    /// Reads the data of a page and its frame in one snapshot.
    pub async fn read<T: Send + 'static>(
        &self,
        needs: Needs,
        read: impl FnOnce(&mut Snapshot, &Viewer) -> Result<T, Error> + Send + 'static,
    ) -> Result<Shown<T>, Refusal> {
        self.pages.show(&self.visitor, needs, read).await
    }

    /// Runs a command that belongs to a page that is only shown, such as recording an export.
    pub async fn write<C: Command>(&self, command: C) -> Result<C::Reply, Refusal> {
        let done = self.pages.write_as(&self.visitor.access(), self.visitor.origin, command).await;
        done.map_err(|error| self.visitor.refused(error))
    }

    /// Sends everything about a company or an account, after recording that.
    pub async fn export_whole(&self, needs: Needs, wanted: Wanted) -> Result<Response, Refusal> {
        let (app, access) = (self.pages.app(), self.visitor.access());
        let found = app.read(&access, needs, move |snapshot, _| wanted.begin(snapshot)).await;
        let Answer { reply, company, now } = found.map_err(|error| self.visitor.refused(error))?;
        let begun = reply.ok_or_else(|| Refusal::not_found("account"))?;
        self.write(begun.record()).await?;
        let answer = respond(app, access, Answer { reply: begun, company, now });
        answer.map_err(|error| self.visitor.refused(error))
    }

    /// The person who visits, also one who still has to show or set up a second factor.
    pub async fn holder(&self) -> Result<Holder, Refusal> {
        let visitor = &self.visitor;
        let found = self.pages.app().find(&visitor.access(), LOGIN, factors::holder).await;
        let found = found.map_err(|error| visitor.refused(error))?;
        visitor.is_known(&found.viewer.caller);
        found.reply.ok_or_else(|| Refusal::not_found("person"))
    }

    /// Only the frame, for a page that shows nothing else from the database.
    pub async fn frame(&self, needs: Needs) -> Result<Frame, Refusal> {
        Ok(self.read(needs, |_, _| Ok(())).await?.frame)
    }
}

impl<I: InPath> FromRequestParts<Pages> for Visit<I> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<Self, Refusal> {
        let visitor = Visitor::from_request_parts(parts, pages).await?;
        let id = in_path(parts).await.map_err(Refusal::Page)?;
        Ok(Self { pages: pages.clone(), visitor, id, query: Form::of_query(parts.uri.query()) })
    }
}

/// A page that is loaded when its address is visited, and again when one of its forms is refused.
pub trait Load<I>: Page + Send {
    fn load(visit: &Visit<I>) -> impl Future<Output = Result<Self, Refusal>> + Send;
}

/// The handler of a page's address.
pub async fn show<P: Load<I>, I: InPath>(visit: Visit<I>) -> Result<Response, Refusal> {
    Ok(P::load(&visit).await?.respond())
}
