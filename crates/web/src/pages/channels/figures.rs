//! The accounts and values of channels and codes, as rows of a page.

use rapport_domain::channel::ChannelCode;
use rapport_domain::channel_total::{CodeTotal, Figures};
use rapport_domain::exchange_rate::total::Rates;

use crate::pages::words::number::grouped;
use crate::pages::words::worth::Worth;

/// The state of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Live,
    Archived,
    /// Deleted from the channel, but accounts still have it.
    Gone,
}

pub struct CodeRow {
    pub code: String,
    pub state: State,
    pub shown: Shown,
}

/// Accounts and values as text.
#[derive(Default)]
pub struct Shown {
    pub accounts: i64,
    /// `None` if no account has a value.
    pub worth: Option<Worth>,
}

impl Shown {
    pub fn of<'a>(totals: impl IntoIterator<Item = &'a CodeTotal>, rates: &Rates) -> Self {
        let Figures { accounts, values } = Figures::of(totals);
        Self { accounts, worth: Worth::new(rates, values) }
    }

    pub fn accounts(&self) -> String {
        grouped(self.accounts)
    }
}

/// The codes of a channel with their figures: live ones first, then archived ones, then deleted ones that accounts
/// still have.
pub fn code_rows(codes: &[ChannelCode], totals: &[CodeTotal], rates: &Rates) -> Vec<CodeRow> {
    let of = |folded: &str| {
        Shown::of(totals.iter().filter(|total| total.code.eq_ignore_ascii_case(folded)), rates)
    };
    let known = codes.iter().map(|code| CodeRow {
        code: code.code.as_str().to_owned(),
        state: if code.archived_at.is_some() { State::Archived } else { State::Live },
        shown: of(code.code.as_str()),
    });
    let mut rows: Vec<CodeRow> = known.collect();
    for gone in totals {
        if !rows.iter().any(|row| row.code.eq_ignore_ascii_case(&gone.code)) {
            rows.push(CodeRow { code: gone.code.clone(), state: State::Gone, shown: of(&gone.code) });
        }
    }
    rows.sort_by_key(|row| match row.state {
        State::Live => 0,
        State::Archived => 1,
        State::Gone => 2,
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::channel::PromoCode;
    use rapport_domain::id::ChannelId;
    use rapport_domain::money::Currency;
    use rapport_domain::time::Time;

    #[test]
    fn codes_come_with_what_they_brought_and_deleted_ones_last() {
        let (channel, at) = (ChannelId::from_bytes([1; 16]), Time::from_micros(0));
        let code = |text: &str, archived_at| ChannelCode {
            channel,
            code: PromoCode::parse(text).unwrap(),
            archived_at,
            created_at: at,
        };
        let part = |text: &str, currency: Option<&str>, accounts, sum| CodeTotal {
            channel,
            code: text.to_owned(),
            currency: currency.map(|code| Currency::parse(code).unwrap()),
            accounts,
            sum,
        };
        let codes = [code("Old", Some(at)), code("SPRING", None)];
        let totals = [
            part("deleted", None, 1, 0),
            part("spring", Some("EUR"), 1_200, 10_000),
            part("spring", Some("USD"), 1, 20_000),
        ];
        let usd = Rates::new(Currency::USD, Vec::new());
        let rows = code_rows(&codes, &totals, &usd);
        let shown: Vec<(&str, State, String, String)> = rows
            .iter()
            .map(|row| {
                let worth = row.shown.worth.as_ref();
                let worth = worth.map(|worth| format!("{} + {}", worth.sum, worth.beside.join(" + ")));
                (row.code.as_str(), row.state, row.shown.accounts(), worth.unwrap_or_default())
            })
            .collect();
        let expected = [
            ("SPRING", State::Live, "1,201".to_owned(), "$2.00 + €1.00".to_owned()),
            ("Old", State::Archived, "0".to_owned(), String::new()),
            ("deleted", State::Gone, "1".to_owned(), String::new()),
        ];
        assert_eq!(shown, expected);
    }
}
