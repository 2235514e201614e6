//! Groups that accounts are ordered by: the currencies in use, and the channels by name.

use rapport_domain::id::ChannelId;
use rapport_domain::text::fold;

use super::sort::By;
use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::{channel, company};

statements! {
    // Each is found from the one before: the accounts of a currency are skipped. There are fewer than 200 currencies.
    company CURRENCIES = "WITH RECURSIVE known (currency, number) AS (\
                          SELECT (SELECT min(a.value_currency) FROM account a \
                          WHERE a.company = $1 AND a.value_currency >= ''), 1 \
                          UNION ALL SELECT (SELECT min(a.value_currency) FROM account a \
                          WHERE a.company = $1 AND a.value_currency > known.currency), known.number + 1 \
                          FROM known WHERE known.currency IS NOT NULL AND known.number < 200) \
                          SELECT currency FROM known WHERE currency IS NOT NULL";
}

/// What an order needs to know about the company.
#[derive(Default)]
pub(super) struct Groups {
    pub own_currency: String,
    /// The currencies in use, the company's first.
    pub currencies: Vec<String>,
    /// By folded name.
    pub channels: Vec<(String, ChannelId)>,
}

impl Groups {
    pub fn of(by: By, snapshot: &mut Snapshot) -> Result<Self, Error> {
        match by {
            By::Value => Self::of_currencies(snapshot),
            By::Channel => {
                let named = channel::list(snapshot)?.into_iter();
                let mut channels: Vec<_> = named.map(|channel| (fold(&channel.name), channel.id)).collect();
                channels.sort_unstable();
                Ok(Self { channels, ..Self::default() })
            }
            _ => Ok(Self::default()),
        }
    }

    fn of_currencies(snapshot: &mut Snapshot) -> Result<Self, Error> {
        let company = company::get(snapshot)?;
        let company = company.ok_or_else(|| Error::fault("the company of the list does not exist"))?;
        let own_currency = company.settings.default_currency.code().to_owned();
        let rows = snapshot.query(&CURRENCIES, &[])?;
        let mut currencies =
            rows.into_iter().map(|mut row| row.take()).collect::<Result<Vec<String>, _>>()?;
        currencies.sort_by_key(|currency| (*currency != own_currency, currency.clone()));
        Ok(Self { own_currency, currencies, channels: Vec::new() })
    }

    /// A text that orders the currencies: the company's comes first.
    pub fn of_currency<'a>(&self, currency: &'a str) -> &'a str {
        if currency == self.own_currency { "" } else { currency }
    }
}
