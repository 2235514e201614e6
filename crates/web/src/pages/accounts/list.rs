//! The list of accounts.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use rapport_app::read::accounts::{By, ListAccounts, ListPage, Sort, list_page};
use rapport_app::read::{CappedCount, DEFAULT_LIMIT, Viewer};
use rapport_domain::account::Account;
use rapport_domain::channel::Channel;
use rapport_domain::pipeline::Status;
use rapport_domain::saved_view::SavedView;
use rapport_domain::time::Time;
use serde_json::{Map, Value};

use crate::pages::READ;
use crate::pages::accounts::asked::Asked;
use crate::pages::accounts::bulk::NO_CHANNEL;
use crate::pages::accounts::chip::{Chip, chips};
use crate::pages::accounts::column::Column;
use crate::pages::accounts::fault::{Fault, faults};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

/// How many channels the menu offers. A query may name others.
const MOST_CHANNELS: usize = 40;
/// How many characters of a custom field a row shows.
const MOST_FIELD_CHARS: usize = 120;

#[derive(Template)]
#[template(path = "accounts/list.html")]
pub struct AccountsPage {
    frame: Frame,
    asked: Asked,
    columns: Vec<Column>,
    sort: Sort,
    rows: Vec<Row>,
    next: Option<String>,
    count: CappedCount,
    as_of: Option<Time>,
    channels: Vec<Channel>,
    fields: Vec<String>,
    views: Vec<SavedView>,
    codes: Vec<(String, String)>,
    chips: Vec<Chip>,
    /// Faults in the query. If there are any, nothing is listed.
    faults: Vec<Fault>,
    pub saving: Draft,
    pub renaming: Draft,
    /// The bar that changes the selected accounts.
    pub changing: Draft,
}
framed!("accounts": AccountsPage);

/// An account, with its custom fields if any are shown.
struct Row {
    account: Account,
    fields: Map<String, Value>,
    is_overdue: bool,
}

impl Row {
    /// A custom field as text, cut if it is long.
    fn field(&self, key: &str) -> String {
        let text = match self.fields.get(key) {
            None | Some(Value::Null) => return String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        match text.char_indices().nth(MOST_FIELD_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let (asked, is_spelled) = Asked::read(&visit.query);
    if !is_spelled {
        return Ok(Redirect::to(&asked.address()).into_response());
    }
    let page = AccountsPage::load(&visit).await?;
    Ok(if page.faults.is_empty() { page.respond() } else { page.refuse() })
}

impl Load<()> for AccountsPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let (asked, _) = Asked::read(&visit.query);
        let wanted = asked.clone();
        let found = visit.read(READ, move |snapshot, viewer| {
            let question = question(&wanted, viewer);
            Ok((list_page(snapshot, question.as_ref().ok())?, question.err().unwrap_or_default()))
        });
        let Shown { frame, reply: (read, faults) } = found.await?;
        let ListPage { page, count, as_of, channels, fields, views, codes } = read;
        let columns = asked.columns();
        let shows_fields = columns.iter().any(|column| matches!(column, Column::Field(_)));
        let row = |account: Account| Row {
            fields: if shows_fields { account.custom_fields.to_map() } else { Map::new() },
            is_overdue: account.due(&frame.company.settings, frame.now).overdue,
            account,
        };
        Ok(Self {
            rows: page.items.into_iter().map(row).collect(),
            next: page.next.map(|cursor| asked.page_href(&cursor.to_string())),
            chips: chips(&asked, &channels),
            sort: asked.sort(),
            columns,
            count,
            as_of,
            channels,
            fields,
            views,
            codes,
            faults,
            saving: Draft::default(),
            renaming: Draft::default(),
            changing: Draft::default(),
            asked,
            frame,
        })
    }
}

impl AccountsPage {
    fn view(&self) -> Option<&SavedView> {
        let query = self.asked.query();
        self.views.iter().find(|view| view.query == query)
    }

    /// Whether the visitor may rename and delete a view: a viewer only their own.
    fn may_change(&self, view: &SavedView) -> bool {
        self.frame.may_work() || view.is_of(Some(self.frame.person))
    }

    /// The channels to choose from, including the selected ones.
    fn offered_channels(&self) -> impl Iterator<Item = (&Channel, bool)> {
        let chosen = |channel: &Channel| self.asked.has("channel", &channel.id.to_string());
        let channels =
            self.channels.iter().enumerate().map(move |(n, channel)| (n, channel, chosen(channel)));
        channels
            .filter(|(n, _, is_chosen)| *n < MOST_CHANNELS || *is_chosen)
            .map(|(_, channel, is_chosen)| (channel, is_chosen))
    }

    /// The columns to choose from, and whether each is selected.
    fn offered_columns(&self) -> Vec<(Column, bool)> {
        let fields = self.fields.iter().cloned().map(Column::Field);
        let mut offered: Vec<Column> = Column::FIXED.into_iter().chain(fields).collect();
        let others: Vec<Column> =
            self.columns.iter().filter(|column| !offered.contains(column)).cloned().collect();
        offered.extend(others);
        offered
            .into_iter()
            .map(|column| (self.columns.contains(&column), column))
            .map(|(is, of)| (of, is))
            .collect()
    }

    /// The link and the current order of a column heading. None if the column is not sortable.
    fn head(&self, sorts: Option<[Sort; 2]>) -> Option<Head> {
        let [first, second] = sorts?;
        let wanted = if self.sort == first { second } else { first };
        let order = match self.sort {
            Sort { by, .. } if by != first.by => "",
            Sort { descending: true, .. } => "descending",
            Sort { descending: false, .. } => "ascending",
        };
        Some(Head { href: self.asked.sorted_href(wanted), order })
    }

    fn name_head(&self) -> Option<Head> {
        self.head(Some(NAME_SORTS))
    }

    /// The ids on this page, for "select all".
    fn ids(&self) -> String {
        let ids: Vec<String> = self.rows.iter().map(|row| row.account.id.to_string()).collect();
        ids.join(" ")
    }

    /// Which sheet of the bar is open: the one that was refused.
    fn is_changing(&self, change: &str) -> bool {
        self.changing.has_faults() && self.changing.has("change", change)
    }

    fn picked(&self) -> usize {
        self.rows.iter().filter(|row| self.is_picked(&row.account)).count()
    }

    fn is_picked(&self, account: &Account) -> bool {
        self.changing.has("account", &account.id.to_string())
    }
}

const NAME_SORTS: [Sort; 2] = [By::Name.ascending(), By::Name.descending()];

/// The orders to choose from where the headings aren't shown, in words.
fn orders() -> Vec<(Sort, String)> {
    let columns = Column::FIXED.into_iter().filter_map(|column| {
        let sorts = column.sorts()?;
        Some((column.label().to_owned(), sorts))
    });
    let all = std::iter::once(("Name".to_owned(), NAME_SORTS)).chain(columns);
    let both =
        all.flat_map(|(label, sorts)| sorts.map(|sort| (sort, format!("{label}, {}", direction(sort)))));
    both.collect()
}

fn direction(sort: Sort) -> &'static str {
    match (sort.by, sort.descending) {
        (By::Name | By::Channel | By::PromoCode, false) => "A to Z",
        (By::Name | By::Channel | By::PromoCode, true) => "Z to A",
        (By::Status, false) => "first stage first",
        (By::Status, true) => "last stage first",
        (By::Value, false) => "smallest first",
        (By::Value, true) => "largest first",
        (_, false) => "oldest first",
        (_, true) => "newest first",
    }
}

struct Head {
    href: String,
    order: &'static str,
}

/// The accounts that a query asks for, or its faults.
fn question(asked: &Asked, viewer: &Viewer) -> Result<ListAccounts, Vec<Fault>> {
    match (asked.filter(viewer.zone()), asked.place()) {
        (Ok(filter), Ok(cursor)) => {
            Ok(ListAccounts { filter, sort: asked.sort(), cursor, limit: DEFAULT_LIMIT, now: viewer.now })
        }
        (filter, place) => {
            let problems = [filter.err(), place.err()].into_iter().flatten();
            Err(problems.flat_map(|problem| faults(&problem)).collect())
        }
    }
}
