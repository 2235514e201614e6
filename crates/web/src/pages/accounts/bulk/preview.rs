//! The page that says what a change of many accounts will do.

use askama::Template;
use rapport_app::read::bulk::{self, Preview};
use rapport_domain::account::Account;
use rapport_domain::bulk::Effect;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;

use super::accounts;
use super::asked::{Asked, Kind};
use crate::pages::WORK;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::shared::sentence;

#[derive(Template)]
#[template(path = "accounts/bulk.html")]
pub struct PreviewPage {
    frame: Frame,
    asked: Asked,
    lines: Vec<Line>,
    missing: usize,
    next: String,
}
framed!("accounts": PreviewPage);

/// An account, and what will become of it.
struct Line {
    id: AccountId,
    name: String,
    before: String,
    after: After,
}

enum After {
    Changes(String),
    Same,
    /// Why it can't be changed.
    Refused(String),
}

impl PreviewPage {
    /// `Err` if there is no such promo code any more.
    pub async fn load(visit: &Visit, asked: Asked, next: String) -> Result<Result<Self, Invalid>, Refusal> {
        let change = asked.change.clone();
        let found = visit.read(WORK, move |snapshot, viewer| bulk::preview(snapshot, viewer, &change));
        let Shown { frame, reply } = found.await?;
        let Some(Preview { lines, missing }) = reply else {
            return Ok(Err(Invalid::one("/promo_code", "unknown_promo_code", "is not an active one")));
        };
        let lines = lines.into_iter().map(|(account, effect)| line(&asked, account, effect)).collect();
        Ok(Ok(Self { frame, asked, lines, missing, next }))
    }

    fn changing(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line.after, After::Changes(_))).count()
    }

    fn same(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line.after, After::Same)).count()
    }

    fn refused(&self) -> usize {
        self.lines.len() - self.changing() - self.same()
    }

    /// How many accounts will change, and why the others won't.
    fn summary(&self) -> Vec<String> {
        let part = |count: usize, text: &str| (count > 0).then(|| format!("{} {text}", accounts(count)));
        let mut summary = vec![format!("{} will change.", accounts(self.changing()))];
        summary.extend(part(self.same(), "won’t, because nothing is different."));
        summary.extend(part(self.refused(), "can’t. The list says why."));
        summary.extend(part(self.missing, "can’t, because already deleted."));
        summary
    }

    fn button(&self) -> String {
        let verb = if self.asked.kind == Kind::Move { "Move" } else { "Change" };
        format!("{verb} {}", accounts(self.changing()))
    }
}

fn line(asked: &Asked, account: Account, effect: Effect) -> Line {
    let after = match effect {
        Effect::Changes(changed) => After::Changes(asked.part(&changed.after)),
        Effect::Same => After::Same,
        Effect::Refused(invalid) => {
            let reasons: Vec<String> = invalid.0.iter().map(|error| sentence(&error.detail)).collect();
            After::Refused(reasons.join(" "))
        }
    };
    Line { id: account.id, before: asked.part(&account), name: account.name, after }
}
