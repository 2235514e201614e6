//! Challenges for passkeys. The script asks for one when a person clicks, hands it to the browser, and sends the answer
//! as a form.

use axum::response::{IntoResponse as _, Response};
use rapport_app::Error;
use rapport_app::passkey::{Aim, Answer, Challenge, Known, Used};
use rapport_domain::id::PersonId;
use serde_json::json;

use crate::edge::auth::Scheme;
use crate::edge::problem::Problem;
use crate::pages::Pages;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::write_headers;

/// The fields with which an answer comes back.
const STATE: &str = "state";
const CREDENTIAL: &str = "credential";

/// A challenge for the script, or why there is none.
pub fn respond(asked: Result<Challenge, Error>) -> Response {
    let mut response = match asked {
        Ok(Challenge { options, state }) => {
            axum::Json(json!({ "options": options, "state": state })).into_response()
        }
        Err(error) => Problem::of(error, Scheme::Token).into_response(),
    };
    write_headers(response.headers_mut());
    response
}

/// The state and the credential that a form brings back; `None` for a form that no passkey answered.
pub fn answered(form: &Form) -> Option<(String, String)> {
    let (state, credential) = (form.text(STATE), form.text(CREDENTIAL));
    (!credential.is_empty()).then(|| (state.to_owned(), credential.to_owned()))
}

/// An answer that claims to be from a passkey that we know: not checked yet.
pub struct Claim {
    answer: Answer,
    known: Known,
}

impl Claim {
    /// The person whose passkey it is.
    pub fn person(&self) -> PersonId {
        self.known.person
    }
}

impl Pages {
    /// Reads the answer of a passkey. `None` if it isn't an answer of a passkey that we know.
    pub async fn read_passkey(&self, aim: Aim, form: &Form) -> Result<Option<Claim>, Error> {
        let Some((state, credential)) = answered(form) else { return Ok(None) };
        let answer = Answer::read(self.app().services(), aim, &state, &credential);
        let Some(answer) = answer else { return Ok(None) };
        let known = answer.look(self.app()).await?;
        Ok(known.map(|known| Claim { answer, known }))
    }

    /// Checks an answer, which must be that person's if one is expected. `None` if it is wrong. The caller limits how
    /// often somebody may try.
    pub async fn check_passkey(
        &self,
        claim: Claim,
        expected: Option<PersonId>,
    ) -> Result<Option<Used>, Error> {
        let Claim { answer, known } = claim;
        self.slowly(move |services| Ok(answer.check(services, known, expected))).await
    }
}
