//! Past digests, and what became of their mails.

use rapport_domain::digest::Week;
use rapport_store::{Error, Snapshot, digest, mail};

use crate::read::Page;

pub use rapport_store::digest::Digest;
pub use rapport_store::mail::{Content, Counts};

/// Digests before a week, newest first, each with its mails by state.
pub fn past(
    snapshot: &mut Snapshot,
    before: Option<Week>,
    limit: i64,
) -> Result<Page<(Digest, Counts)>, Error> {
    let Page { items, more } = digest::list(snapshot, before, limit)?;
    let with_counts = |made: Digest| {
        let counts = mail::counts(snapshot, made.content);
        counts.map(|counts| (made, counts))
    };
    let items = items.into_iter().map(with_counts).collect::<Result<Vec<_>, Error>>()?;
    Ok(Page { items, more })
}

/// A digest as it was sent.
pub struct Sent {
    pub digest: Digest,
    pub counts: Counts,
    pub content: Content,
}

pub fn of_week(snapshot: &mut Snapshot, week: Week) -> Result<Option<Sent>, Error> {
    let Some(digest) = digest::get(snapshot, week)? else { return Ok(None) };
    let counts = mail::counts(snapshot, digest.content)?;
    let content = mail::content(snapshot, digest.content)?;
    Ok(content.map(|content| Sent { digest, counts, content }))
}
