//! Ends logins that have belonged to no company for a while. They serve nobody, so we don't keep them.

use rapport_domain::departed::{Fate, fate};
use rapport_domain::id::PersonId;
use rapport_store::{Lane, Tx, departed};

use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;

/// Logins looked at per read.
const STRETCH: i64 = 500;

/// Looks at some logins after `after`; returns where to continue, unless these were the last.
pub async fn step(app: &App, after: Option<PersonId>) -> Result<Option<PersonId>, Error> {
    let now = app.now();
    let found = app.read_across(move |across| departed::standings(across, after, STRETCH)).await?;
    let is_full = i64::try_from(found.len()).unwrap_or(0) == STRETCH;
    let next = found.last().filter(|_| is_full).map(|(person, _)| *person);
    let of = |wanted: Fate| {
        let chosen = found.iter().filter(|(_, standing)| fate(*standing, now) == wanted);
        chosen.map(|(person, _)| *person).collect::<Vec<PersonId>>()
    };
    let command = SettleLogins { depart: of(Fate::Departs), back: of(Fate::Returns), end: of(Fate::Ends) };
    if !command.is_empty() {
        app.write(&Access::NO_COMPANY, command).await?;
    }
    Ok(next)
}

struct SettleLogins {
    depart: Vec<PersonId>,
    back: Vec<PersonId>,
    end: Vec<PersonId>,
}

impl SettleLogins {
    fn is_empty(&self) -> bool {
        self.depart.is_empty() && self.back.is_empty() && self.end.is_empty()
    }
}

impl Command for SettleLogins {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        departed::depart(tx, &self.depart, cx.now)?;
        for person in &self.back {
            departed::come_back(tx, *person)?;
        }
        for person in &self.end {
            if departed::delete(tx, *person)? {
                let person = person.to_string();
                tx.after_commit(move || tracing::info!(person, "login without a company deleted"));
            }
        }
        Ok(())
    }
}
