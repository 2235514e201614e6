//! A form that was sent, and what becomes of it: the same everywhere.
//!
//! - It is valid: its command runs once, and the visitor goes on to another page, which says what was done.
//! - Its input is invalid: its page again (422) with the faults at their fields and everything that was typed.
//! - It conflicts with what is there: the same, at the field that conflicts, else as a banner.
//! - It does something sensitive, and the visitor proved too long ago who they are: a page that asks for their password or
//!   a passkey, and then goes on with it (`proof`).
//! - The visitor lacks the role: the page that says so. Their session has ended: the login.

use std::ops::Deref;

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::response::Response;
use rapport_app::{Command, Error};

use crate::pages::Pages;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::Page;
use crate::pages::kit::proof;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::kit::visitor::path_of;
use crate::shared::subject::InPath;

/// A form, with the visit in which it was sent.
pub struct Action<I = ()> {
    visit: Visit<I>,
    /// The address that the form was sent to.
    path: String,
    pub form: Form,
}

impl<I> Deref for Action<I> {
    type Target = Visit<I>;

    fn deref(&self) -> &Visit<I> {
        &self.visit
    }
}

impl<I: InPath + Sync> FromRequest<Pages> for Action<I> {
    type Rejection = Refusal;

    async fn from_request(request: Request, pages: &Pages) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, pages).await?;
        let path = path_of(&parts.uri);
        let form = Form::from_request(Request::from_parts(parts, body), pages).await?;
        let form = proof::answered(&visit, &path, form).await?;
        Ok(Self { visit, path, form })
    }
}

impl<I: Send + Sync> Action<I> {
    /// The form was on a page with this query, which is shown again if the form is refused.
    pub fn on_page(mut self, query: Form) -> Self {
        self.visit.query = query;
        self
    }

    /// Runs the command of a form. If it is refused, `put` places the form on its page again.
    pub async fn run<C: Command, P: Load<I>>(
        &self,
        command: Result<C, impl Into<Error> + Send>,
        put: impl FnOnce(&mut P, Draft) + Send,
    ) -> Result<C::Reply, Refusal> {
        let done = match command {
            Ok(command) => self.submit(command).await,
            Err(error) => Err(self.allowed::<C>(error.into()).await),
        };
        self.settle(done, put).await
    }

    /// Like `run`, for a command that checks its input itself.
    pub async fn send<C: Command, P: Load<I>>(
        &self,
        command: C,
        put: impl FnOnce(&mut P, Draft) + Send,
    ) -> Result<C::Reply, Refusal> {
        self.run(Ok::<C, Error>(command), put).await
    }

    /// Runs the command of a button. If it is refused, its page says why.
    pub async fn act<P: Load<I>, C: Command>(&self, command: C) -> Result<C::Reply, Refusal> {
        self.send(command, banner::<P>).await
    }

    /// Runs a command once, however often its form is sent.
    pub async fn submit<C: Command>(&self, command: C) -> Result<C::Reply, Error> {
        self.pages.submit(&self.visitor, &self.form, command).await
    }

    /// The fault of a form, unless the visitor may not send that form at all.
    async fn allowed<C: Command>(&self, fault: Error) -> Error {
        let verified = self.pages.app().read(&self.visitor.access(), C::NEEDS, |_, _| Ok(())).await;
        verified.err().unwrap_or(fault)
    }

    /// What was done, else the page with the form again.
    pub async fn settle<T, P: Load<I>>(
        &self,
        done: Result<T, Error>,
        put: impl FnOnce(&mut P, Draft) + Send,
    ) -> Result<T, Refusal> {
        let error = match done {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let draft = self.refused(error).await?;
        let mut page = P::load(&self.visit).await?;
        put(&mut page, draft);
        Err(Refusal::Again(Box::new(page.refuse())))
    }

    /// The faults of a form. For an error that isn't one, there is another page: for the lack of a proof, the page that
    /// asks for it.
    pub async fn refused(&self, error: Error) -> Result<Draft, Refusal> {
        if error.is_lack_of_proof() {
            let page = proof::ask(&self.visit, &self.path, &self.form).await?;
            return Err(Refusal::Again(Box::new(page)));
        }
        Draft::refused(&self.form, error).map_err(|error| self.visitor.refused(error))
    }

    /// Leads to another page, which says what was done.
    #[expect(clippy::unnecessary_wraps, reason = "handlers end with it")]
    pub fn done(&self, to: &str, flash: impl Into<Flash>) -> Result<Response, Refusal> {
        Ok(self.pages.done_for(self.visitor.session, to, flash.into()))
    }
}

/// Shows at the top of a page why a form without fields of its own was refused.
pub fn banner<P: Page>(page: &mut P, draft: Draft) {
    page.frame_mut().refused = draft;
}
