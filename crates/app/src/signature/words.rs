//! What is told to people about a signature.

use rapport_domain::signature::{self, Scheme};
use rapport_domain::standard_webhook::{self, Age, TOLERANCE_SECONDS};

use super::{Change, Finding, Malformed, Mistake, Report};

const TOLERANCE_MINUTES: i64 = TOLERANCE_SECONDS / 60;

impl Report {
    pub const fn is_valid(&self) -> bool {
        matches!(self.finding, Finding::Genuine)
    }

    /// A title and an explanation.
    pub fn words(&self) -> (&'static str, String) {
        match &self.finding {
            Finding::Genuine => ("Valid signature", genuine_words(self.scheme).to_owned()),
            Finding::Untimely(age) => untimely_words(*age),
            Finding::Malformed(Malformed::Service(malformed)) => {
                ("Malformed header", service_words(*malformed))
            }
            Finding::Malformed(Malformed::Standard(malformed)) => {
                ("Malformed header", standard_words(*malformed).to_owned())
            }
            Finding::BodyChanged(change) => ("Changed body", change_words(*change).to_owned()),
            Finding::IdChanged => (
                "Changed id",
                "The secret is correct, but another webhook-id was signed: the id in the body.".to_owned(),
            ),
            Finding::WrongSecret(mistake) => ("Wrong secret", mistake_words(self.scheme, mistake)),
            Finding::NoSecret => (
                "No secret to check with",
                "The webhook was deleted, or the server can’t decrypt its secret. Paste the secret instead."
                    .to_owned(),
            ),
            Finding::Unclear => ("Invalid signature", unclear_words(self.scheme).to_owned()),
        }
    }
}

const fn genuine_words(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Service => "The body was signed with this secret.",
        Scheme::Standard => {
            "The id, the timestamp and the body were signed with this secret, and the timestamp is recent. If a library \
             refuses the request, give it the secret in the form for libraries, which starts with “whsec_”."
        }
    }
}

fn untimely_words(age: Age) -> (&'static str, String) {
    let (title, difference) = match age {
        Age::Fresh => ("Recent timestamp", "recent".to_owned()),
        Age::Old(seconds) => ("Old timestamp", format!("{} old", span(seconds))),
        Age::Ahead(seconds) => ("Timestamp in the future", format!("{} in the future", span(seconds))),
    };
    let text = format!(
        "The signature is correct, but its timestamp is {difference}. Receivers refuse more than {TOLERANCE_MINUTES} \
         minutes, so that nobody can repeat a request later. If it was refused when it arrived, check the receiver’s clock."
    );
    (title, text)
}

/// `12 minutes`.
fn span(seconds: i64) -> String {
    match seconds {
        0..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn service_words(malformed: signature::Malformed) -> String {
    use signature::Malformed::{Empty, Length, NoScheme, NotHexadecimal, UpperCase};
    match malformed {
        Empty => "Paste the value of X-Service-Signature or webhook-signature.".to_owned(),
        NoScheme => {
            "It must start with “sha256=” (X-Service-Signature) or “v1,” (webhook-signature).".to_owned()
        }
        Length(found) => {
            format!("“sha256=” must be followed by 64 characters, but there are {found}. Was it cut off?")
        }
        UpperCase => "The letters a to f must be lower case.".to_owned(),
        NotHexadecimal => "Only 0 to 9 and a to f may follow “sha256=”.".to_owned(),
    }
}

const fn standard_words(malformed: standard_webhook::Malformed) -> &'static str {
    use standard_webhook::Malformed::{Milliseconds, NoId, NoTimestamp, NoVersion, NotBase64, NotSeconds};
    match malformed {
        NoVersion => "webhook-signature must contain a signature that starts with “v1,”.",
        NotBase64 => "“v1,” must be followed by 44 characters of base64. Was it cut off?",
        NoId => "The value of webhook-id is missing. It is part of what webhook-signature covers.",
        NoTimestamp => {
            "The value of webhook-timestamp is missing. It is part of what webhook-signature covers."
        }
        NotSeconds => "webhook-timestamp must be whole seconds since 1970, such as 1800000000.",
        Milliseconds => "webhook-timestamp must be in seconds since 1970, and this looks like milliseconds.",
    }
}

const fn change_words(change: Change) -> &'static str {
    match change {
        Change::Ends => {
            "The secret is correct. Spaces or line breaks at the start or end of the body were added or removed after it was \
             signed."
        }
        Change::Layout => {
            "The secret is correct. The body was parsed and serialized again. Verify the raw bytes before parsing them."
        }
        Change::Content => "The secret is correct, but this isn’t the body that was sent for this event.",
    }
}

fn mistake_words(scheme: Scheme, mistake: &Mistake) -> String {
    match mistake {
        Mistake::Blanks => "It has spaces around it. Without them the signature is valid.".to_owned(),
        Mistake::Prefix => {
            "The prefix “whs_” is part of the secret. With it the signature is valid.".to_owned()
        }
        Mistake::LibraryForm => {
            "This is the form for Standard Webhooks libraries, which check webhook-signature. For X-Service-Signature, use \
             the secret that starts with “whs_”: with it the signature is valid."
                .to_owned()
        }
        Mistake::Other(webhook) => {
            format!("The signature was made with the secret of another webhook: {}.", webhook.place())
        }
        Mistake::Unknown => match scheme {
            Scheme::Service => {
                "The body is exactly what was sent, so it was signed with a different secret, perhaps one from before a \
                 rotation."
            }
            Scheme::Standard => {
                "The body is exactly what was sent, so it was signed with a different secret, perhaps one from before a \
                 rotation, or webhook-id or webhook-timestamp is from another attempt."
            }
        }
        .to_owned(),
    }
}

const fn unclear_words(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Service => "Either the secret is wrong or the body was changed.",
        Scheme::Standard => "Either the secret is wrong, or the body, the id or the timestamp was changed.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_unit_that_fits() {
        let table = [
            (301, "5 minutes"),
            (7_199, "119 minutes"),
            (7_200, "2 hours"),
            (172_799, "47 hours"),
            (172_800, "2 days"),
        ];
        for (seconds, expected) in table {
            assert_eq!(span(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn only_a_genuine_and_recent_signature_is_valid() {
        let report = |finding| Report { scheme: Scheme::Standard, finding };
        assert!(report(Finding::Genuine).is_valid());
        for (finding, title) in [
            (Finding::Untimely(Age::Old(301)), "Old timestamp"),
            (Finding::Untimely(Age::Ahead(301)), "Timestamp in the future"),
            (Finding::BodyChanged(Change::Layout), "Changed body"),
            (Finding::WrongSecret(Mistake::Blanks), "Wrong secret"),
            (Finding::Unclear, "Invalid signature"),
        ] {
            let report = report(finding);
            assert!(!report.is_valid());
            assert_eq!(report.words().0, title);
        }
    }
}
