//! A passkey in the browser: Chromium's virtual authenticator, which acts as if a finger were always on it.

use fantoccini::wd::WebDriverCompatibleCommand;
use hyper::Method;
use serde_json::{Value, json};
use url::{ParseError, Url};

use crate::Browser;

/// Adds or removes an authenticator (WebAuthn, "User Agent Automation").
#[derive(Debug)]
enum Command {
    Add(Value),
    Remove(String),
    Verify { id: String, succeeds: bool },
}

impl WebDriverCompatibleCommand for Command {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        let place = format!("session/{}/webauthn/authenticator", session_id.unwrap_or_default());
        base_url.join(&match self {
            Self::Add(_) => place,
            Self::Remove(id) => format!("{place}/{id}"),
            Self::Verify { id, .. } => format!("{place}/{id}/uv"),
        })
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        match self {
            Self::Add(kind) => (Method::POST, Some(kind.to_string())),
            Self::Remove(_) => (Method::DELETE, None),
            Self::Verify { succeeds, .. } => {
                (Method::POST, Some(json!({ "isUserVerified": succeeds }).to_string()))
            }
        }
    }
}

/// An authenticator that was put into a browser.
pub struct VirtualAuthenticator(String);

impl Browser {
    /// Puts an authenticator into the browser that keeps passkeys and recognizes its person.
    pub async fn add_authenticator(&self) -> VirtualAuthenticator {
        let kind = json!({
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
            "isUserConsenting": true, "isUserVerified": true,
        });
        let added = self.client.issue_cmd(Command::Add(kind)).await.expect("an authenticator");
        VirtualAuthenticator(added.as_str().expect("its id").to_owned())
    }

    /// From now on the authenticator recognizes its person, or doesn't.
    pub async fn recognize(&self, authenticator: &VirtualAuthenticator, succeeds: bool) {
        let command = Command::Verify { id: authenticator.0.clone(), succeeds };
        self.client.issue_cmd(command).await.expect("an authenticator");
    }

    /// Takes it away with all its passkeys, so that the next test gets a browser without one.
    pub async fn remove_authenticator(&self, authenticator: VirtualAuthenticator) {
        self.client.issue_cmd(Command::Remove(authenticator.0)).await.expect("an authenticator");
    }
}
