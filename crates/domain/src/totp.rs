//! Codes from an authenticator app (TOTP, RFC 6238), as all apps make them: SHA-1, six digits, every 30 seconds.

use totp_rs::{Builder, Secret, Totp};

use crate::time::Time;

pub const SECRET_BYTES: usize = 20;
pub const DIGITS: usize = 6;
/// After so many wrong codes in a row, no further one is accepted until the person logs in another way.
pub const MAX_WRONG_CODES: i64 = 100;
/// How apps name the service.
const ISSUER: &str = "Rapport";
const STEP_SECONDS: u64 = 30;
/// A clock may be this many steps ahead or behind.
const SKEW: u16 = 1;

/// What an app shares with us.
#[derive(Clone)]
pub struct TotpSecret(Secret);

impl TotpSecret {
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(Secret::from(random))
    }

    /// Reads the text that [`Self::to_text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Secret::try_from_base32(text).ok().map(Self)
    }

    /// As a person types it into an app that can't scan.
    pub fn to_text(&self) -> String {
        self.0.to_base32()
    }

    /// The link that apps read from a QR code.
    pub fn uri(&self, account: &str) -> String {
        // The colon separates the issuer from the account.
        let account = account.replace(':', " ");
        let described = self.builder().with_account_name(account).with_issuer(Some(ISSUER));
        described.build_noncompliant().to_url().unwrap_or_default()
    }

    /// The number of the step whose code this is, if its time is now or nearly so. Higher numbers are later, so that
    /// the caller can accept each code once.
    pub fn check(&self, code: &str, now: Time) -> Option<i64> {
        self.totp().check(code, seconds(now)).and_then(|step| i64::try_from(step).ok())
    }

    /// The code that an app shows at this time.
    pub fn code_at(&self, time: Time) -> String {
        self.totp().generate(seconds(time)).to_string()
    }

    fn totp(&self) -> Totp {
        self.builder().build_noncompliant()
    }

    fn builder(&self) -> Builder {
        let digits = u8::try_from(DIGITS).unwrap_or(6);
        let builder = Builder::new().with_digits(digits).with_step_duration(STEP_SECONDS).with_skew(SKEW);
        builder.with_secret(self.0.clone())
    }
}

fn seconds(time: Time) -> u64 {
    u64::try_from(time.as_micros() / 1_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of the examples in RFC 6238.
    fn secret() -> TotpSecret {
        TotpSecret::new(*b"12345678901234567890")
    }

    const fn at(seconds: i64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        let table = [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
        ];
        for (time, code) in table {
            assert_eq!(secret().code_at(at(time)), code);
            assert_eq!(secret().check(code, at(time)), Some(time / 30), "{code}");
        }
    }

    #[test]
    fn a_code_counts_one_step_early_and_one_step_late() {
        let (now, step) = (1_111_111_111, 1_111_111_111 / 30);
        let code = secret().code_at(at(now));
        for (apart, expected) in
            [(-60, None), (-30, Some(step)), (0, Some(step)), (30, Some(step)), (60, None)]
        {
            assert_eq!(secret().check(&code, at(now + apart)), expected, "{apart}");
        }
    }

    #[test]
    fn anything_else_is_no_code() {
        for other in ["", "28708", "2870820", " 287082", "+87082", "28708x"] {
            assert_eq!(secret().check(other, at(59)), None, "{other}");
        }
    }

    #[test]
    fn apps_are_told_whose_code_it_is() {
        let text = secret().to_text();
        assert_eq!(text, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(TotpSecret::parse(&text).unwrap().code_at(at(59)), "287082");
        assert!(TotpSecret::parse("not a secret!").is_none());
        let uri = secret().uri("an:a@acme.test");
        assert!(uri.starts_with("otpauth://totp/Rapport:an%20a%40acme.test?"), "{uri}");
        assert!(uri.contains(&format!("secret={text}")) && uri.contains("issuer=Rapport"), "{uri}");
    }
}
