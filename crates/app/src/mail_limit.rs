//! Counts mail that people cause against its limits, for all nodes together.

use rapport_domain::history::Actor;
use rapport_domain::mail::Kind;
use rapport_domain::mail_limit::{MOST_OF_A_COMPANY, OF_A_COMPANY, OF_A_COMPANY_SECONDS, Target, rule};
use rapport_domain::time::Time;
use rapport_store::{Tx, company, mail_budget};

use crate::command::Context;
use crate::error::Error;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Counts a mail, or refuses it if too many were sent.
pub(crate) fn admit(tx: &mut Tx, cx: &Context, kind: Kind, target: Target) -> Result<(), Error> {
    // The server's administrator has no limit.
    let Some(rule) = rule(kind).filter(|_| !matches!(cx.actor(), Actor::CommandLine)) else { return Ok(()) };
    if OF_A_COMPANY.contains(&kind) {
        // Two at once are counted one after the other.
        company::lock(tx)?;
        let since = cx.now.plus_seconds(-OF_A_COMPANY_SECONDS);
        if let Some(at) = mail_budget::newest(tx, MOST_OF_A_COMPANY, since)?.filter(|at| *at > since) {
            return Err(refusal("your company", at.plus_seconds(OF_A_COMPANY_SECONDS), cx.now));
        }
    }
    let mark = target.key(kind);
    let mut sent = mail_budget::open(tx, &mark, cx.now)?;
    sent.add(rule, cx.company().id, cx.now).map_err(|free| refusal("this address", free, cx.now))?;
    mail_budget::keep(tx, &mark, &sent)?;
    Ok(())
}

fn refusal(whose: &str, free: Time, now: Time) -> Error {
    let seconds = u64::try_from(free.micros_since(now)).unwrap_or(0).div_ceil(1_000_000).max(1);
    let wait = if seconds <= HOUR {
        format!("{} min", seconds.div_ceil(MINUTE))
    } else {
        format!("{} h", seconds.div_ceil(HOUR))
    };
    let detail = format!("the limit on mail for {whose} is reached; try again in {wait}");
    Error::too_many("too_many_mails", detail, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_how_long_to_wait() {
        let now = Time::from_micros(0);
        let said = |seconds: i64| match refusal("this address", now.plus_seconds(seconds), now) {
            Error::TooMany { detail, seconds, .. } => {
                (detail.rsplit("in ").next().unwrap().to_owned(), seconds)
            }
            other => panic!("{other:?}"),
        };
        for (seconds, expected) in
            [(-5, ("1 min", 1)), (61, ("2 min", 61)), (3_600, ("60 min", 3_600)), (3_601, ("2 h", 3_601))]
        {
            assert_eq!(said(seconds), (expected.0.to_owned(), expected.1));
        }
    }
}
