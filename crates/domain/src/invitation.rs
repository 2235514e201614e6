//! Invitations to a company and password resets: how long they are valid, and their links.

use crate::id::InvitationId;
use crate::member::{Email, Role};
use crate::time::Time;

/// How long an invitation can be accepted.
pub const INVITATION_DAYS: i64 = 7;
/// How long a password reset can be used.
pub const RESET_SECONDS: i64 = 60 * 60;
/// How many resets a person may request while one is valid.
pub const MAX_RESETS: i64 = 3;
/// The pages that links in mail point to; the secret is the next path segment.
pub const INVITATION_PATH: &str = "/invitation/";
pub const RESET_PATH: &str = "/password-reset/";

/// A pending invitation, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub id: InvitationId,
    pub email: Email,
    pub role: Role,
    /// The name of the person who sent it, if a person did.
    pub invited_by: Option<String>,
    pub created_at: Time,
    pub expires_at: Time,
}

impl Invitation {
    pub fn is_expired(&self, now: Time) -> bool {
        now >= self.expires_at
    }
}

/// The URL of a page with a secret, or with a placeholder for one.
pub fn link(base_url: &str, path: &str, secret: &str) -> String {
    format!("{base_url}{path}{secret}")
}
