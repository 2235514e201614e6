//! The board: a column for each stage, with its count and value. Each column has its own paging.

use std::collections::BTreeMap;

use askama::Template;
use rapport_app::read::accounts::Cursor;
use rapport_app::read::pipeline::{BOARD_SORT, Board, Stage, board};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use crate::pages::READ;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::pipeline::card::{Card, Seen};
use crate::pages::words::worth::Worth;

/// How many cards a column shows. A folded column shows fewer.
const CARDS: i64 = 14;
const FOLDED_CARDS: i64 = 8;

#[derive(Template)]
#[template(path = "pipeline/board.html")]
pub struct BoardPage {
    frame: Frame,
    columns: Vec<Column>,
    /// Lost and Do not contact, which are folded.
    folded: Vec<Column>,
    as_of: Option<Time>,
    /// The query that keeps the positions of the columns after a move.
    query: String,
}
framed!("pipeline": BoardPage);

impl BoardPage {
    fn is_empty(&self) -> bool {
        self.columns.iter().chain(&self.folded).all(|column| column.stage.accounts.count == 0)
    }
}

struct Column {
    stage: Stage,
    /// What its accounts are worth, if they have values.
    worth: Option<Worth>,
    cards: Vec<Card>,
    /// The address of this column's next cards.
    more: Option<String>,
    /// The address of this column's first cards, unless they are shown.
    first: Option<String>,
    /// A folded column is open after a move in it.
    is_open: bool,
}

/// A move is made on the board too.
impl<I: Sync> Load<I> for BoardPage {
    async fn load(visit: &Visit<I>) -> Result<Self, Refusal> {
        let places = Places::read(&visit.query);
        let wanted = places.clone();
        let found = visit
            .read(READ, move |snapshot, viewer| board(snapshot, viewer, |status| wanted.beginning(status)));
        let Shown { frame, reply: Board { stages, rates, entered } } = found.await?;
        let as_of = stages.iter().filter_map(|(stage, _)| stage.as_of).min();
        let columns = stages.into_iter().map(|(stage, page)| {
            let cards = page.items.into_iter().map(|account| {
                let since = entered.get(&account.id).copied();
                Card::new(account, since, &frame)
            });
            let worth = Worth::of(&rates, &stage.values);
            places.column(stage, worth, cards.collect(), page.next)
        });
        let (folded, columns): (Vec<_>, Vec<_>) = columns.partition(|column| is_folded(column.stage.status));
        Ok(Self { columns, folded, as_of, query: places.query(), frame })
    }
}

const fn is_folded(status: Status) -> bool {
    matches!(status, Status::Lost | Status::DoNotContact)
}

/// The positions of the columns: the cursor of each that is not at its beginning, and the folded one that is open.
#[derive(Debug, Clone, Default)]
pub struct Places {
    cursors: BTreeMap<&'static str, Cursor>,
    open: Option<Status>,
}

const OPEN: &str = "open";

impl Places {
    pub fn read(query: &Form) -> Self {
        let place = |status: Status| {
            // An invalid cursor leads to the beginning.
            let cursor = Cursor::parse(query.text(&format!("after_{status}")), BOARD_SORT).ok()?;
            Some((status.as_str(), cursor))
        };
        let open = Status::ALL.into_iter().find(|status| status.as_str() == query.text(OPEN));
        Self {
            cursors: Status::ALL.into_iter().filter_map(place).collect(),
            open: open.filter(|status| is_folded(*status)),
        }
    }

    /// With this column open, if it is folded.
    pub fn opened(mut self, status: Status) -> Self {
        if is_folded(status) {
            self.open = Some(status);
        }
        self
    }

    /// The query string with its question mark, or empty if all columns are at their beginning.
    pub fn query(&self) -> String {
        let pairs = self.cursors.iter().map(|(status, cursor)| format!("after_{status}={cursor}"));
        let pairs = pairs.chain(self.open.map(|status| format!("{OPEN}={status}")));
        let query = pairs.collect::<Vec<_>>().join("&");
        if query.is_empty() { query } else { format!("?{query}") }
    }

    /// The address of the board with one column at another position.
    fn with(&self, status: Status, cursor: Option<Cursor>) -> String {
        let mut places = self.clone().opened(status);
        match cursor {
            Some(cursor) => places.cursors.insert(status.as_str(), cursor),
            None => places.cursors.remove(status.as_str()),
        };
        format!("/pipeline{}#stage-{status}", places.query())
    }

    /// Where a column begins, and how many cards it shows.
    fn beginning(&self, status: Status) -> (Option<Cursor>, i64) {
        let cards = if is_folded(status) { FOLDED_CARDS } else { CARDS };
        (self.cursors.get(status.as_str()).cloned(), cards)
    }

    fn column(&self, stage: Stage, worth: Option<Worth>, cards: Vec<Card>, next: Option<Cursor>) -> Column {
        let status = stage.status;
        Column {
            more: next.map(|cursor| self.with(status, Some(cursor))),
            first: self.cursors.contains_key(status.as_str()).then(|| self.with(status, None)),
            is_open: self.open == Some(status) || self.cursors.contains_key(status.as_str()),
            cards,
            worth,
            stage,
        }
    }
}
