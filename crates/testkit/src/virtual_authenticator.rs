//! A passkey in the browser: Chromium's virtual authenticator, which acts as if a finger were always on it.

use serde_json::json;

use crate::Browser;

/// An authenticator that was put into a browser.
pub struct VirtualAuthenticator(String);

impl Browser {
    /// Puts an authenticator into the browser that keeps passkeys and recognizes its person.
    pub async fn add_authenticator(&self) -> VirtualAuthenticator {
        self.command("WebAuthn.enable", json!({})).await;
        let kind = json!({
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
            "automaticPresenceSimulation": true, "isUserVerified": true,
        });
        let added = self.command("WebAuthn.addVirtualAuthenticator", json!({ "options": kind })).await;
        VirtualAuthenticator(added["authenticatorId"].as_str().expect("its id").to_owned())
    }

    /// From now on the authenticator recognizes its person, or doesn't.
    pub async fn recognize(&self, authenticator: &VirtualAuthenticator, succeeds: bool) {
        let verified = json!({ "authenticatorId": authenticator.0, "isUserVerified": succeeds });
        self.command("WebAuthn.setUserVerified", verified).await;
    }
}
