//! Mail: its kinds, when sending is retried, and text that is safe in a header.

use crate::time::Time;

/// How long a mail's record is kept.
pub const KEPT_DAYS: i64 = 90;
/// How long a node may take to send a mail before another one takes over. Longer than any attempt.
pub const LEASE_SECONDS: i64 = 300;
/// How long a notice about somebody's login is worth sending.
pub const NOTICE_DAYS: i64 = 2;
/// The placeholder for a link's secret in a stored mail.
pub const SECRET_PLACE: &str = "%%link-secret%%";
/// How much of a server's response is kept.
pub const MAX_ERROR_CHARS: usize = 500;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
/// The waits after each failed attempt, in seconds.
const RETRY_AFTER: [i64; 6] = [MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR];
/// How much of a name a list or a subject shows.
const MAX_LINE_CHARS: usize = 200;

/// The purpose of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Digest,
    Invitation,
    PasswordReset,
    /// A webhook was auto-disabled after repeated failures.
    WebhookDisabled,
    /// The break-glass owner logged in with a password.
    BreakGlassUsed,
    /// Sent to check whether mail works.
    Test,
    /// Something about the recipient's login changed.
    Notice,
    /// The link with which a person confirms their new address.
    AddressChange,
    /// Tells a person at their old address that a change was asked for or made.
    AddressNotice,
    /// The company will be deleted, or won't be after all.
    CompanyDeletion,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::Digest,
        Self::Invitation,
        Self::PasswordReset,
        Self::WebhookDisabled,
        Self::BreakGlassUsed,
        Self::Test,
        Self::Notice,
        Self::AddressChange,
        Self::AddressNotice,
        Self::CompanyDeletion,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Digest => "digest",
            Self::Invitation => "invitation",
            Self::PasswordReset => "password_reset",
            Self::WebhookDisabled => "webhook_disabled",
            Self::BreakGlassUsed => "break_glass_used",
            Self::Test => "test",
            Self::Notice => "notice",
            Self::AddressChange => "address_change",
            Self::AddressNotice => "address_notice",
            Self::CompanyDeletion => "company_deletion",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    Waiting,
    Sent,
    Failed,
}

impl State {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The server rejected this mail and would reject it again.
    pub permanent: bool,
    pub error: String,
}

/// Whether a reply code is about the mail itself: a mailbox that doesn't exist, or content that is rejected.
///
/// Other 5xx codes are about the connection or the login (530, 535, …), which an operator can fix.
pub const fn is_permanent(code: u16) -> bool {
    matches!(code, 510..=519 | 541 | 550..=559)
}

/// When to retry a mail after its `attempts`th attempt failed; `None` means it isn't retried.
pub fn retry_at(attempts: i64, permanent: bool, not_after: Time, now: Time) -> Option<Time> {
    if permanent {
        return None;
    }
    let pause = usize::try_from(attempts - 1).ok().and_then(|place| RETRY_AFTER.get(place))?;
    Some(now.plus_seconds(*pause)).filter(|at| *at <= not_after)
}

/// Text from outside as one plain line: for subjects, and for names inside our own text.
///
/// Line ends and other control characters become spaces, so the text can't start a new header or line;
/// characters that change the text direction are removed, so a name can't rearrange our text.
pub fn one_line(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain = text
        .chars()
        .filter(|c| !turns(*c))
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c });
    let plain: String = plain.take(MAX_LINE_CHARS).collect();
    plain.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(0);
    const NEVER: Time = Time::from_micros(i64::MAX);

    #[test]
    fn a_mail_is_given_up_after_six_retries() {
        let pauses: Vec<i64> = (1..)
            .map_while(|attempts| retry_at(attempts, false, NEVER, NOW))
            .map(|at| at.as_micros() / 1_000_000)
            .collect();
        assert_eq!(pauses, [60, 300, 1_800, 7_200, 21_600, 43_200]);
        assert_eq!(retry_at(1, true, NEVER, NOW), None);
        assert_eq!(retry_at(0, false, NEVER, NOW), None);
    }

    #[test]
    fn an_expired_mail_is_not_retried() {
        assert!(retry_at(1, false, NOW.plus_seconds(60), NOW).is_some());
        assert_eq!(retry_at(1, false, NOW.plus_seconds(59), NOW), None);
    }

    #[test]
    fn only_answers_about_the_mail_itself_are_final() {
        for code in [510, 541, 550, 551, 552, 553, 554] {
            assert!(is_permanent(code), "{code}");
        }
        for code in [421, 450, 451, 500, 502, 521, 530, 534, 535, 538] {
            assert!(!is_permanent(code), "{code}");
        }
    }

    #[test]
    fn a_line_is_one_line_whatever_it_was() {
        let table = [
            ("Nordlys AS", "Nordlys AS"),
            ("A\r\nBcc: all@acme.test", "A Bcc: all@acme.test"),
            ("tab\tnul\0esc\u{1b}[31m", "tab nul esc [31m"),
            ("para\u{2029}graph", "para graph"),
            ("\u{202e}txt.exe", "txt.exe"),
            ("שלום 🎉 <b>", "שלום 🎉 <b>"),
            ("  many   spaces ", "many spaces"),
            ("", ""),
        ];
        for (text, line) in table {
            assert_eq!(one_line(text), line, "{text:?}");
        }
        assert_eq!(one_line(&"ä".repeat(300)).chars().count(), MAX_LINE_CHARS);
    }

    #[test]
    fn kinds_read_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
    }
}
