//! The query of the accounts list: filters, order, columns, and the start of the page.
//!
//! A query has one canonical spelling, so that a saved view can be recognised and links stay short. The query that a
//! form sends (empty fields, a custom field in two parts) is redirected to it.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use rapport_app::read::accounts::{Cursor, Sort};
use rapport_domain::audience::Filter;
use rapport_domain::time::Time;

use crate::edge::problem::Problem;
use crate::pages::accounts::PATH;
use crate::pages::accounts::column::Column;
use crate::pages::kit::form::Form;
use crate::shared::account_filter;
use crate::shared::parameters::Parameters;

/// The filter parameters in canonical order, and whether each may be repeated.
const FILTERS: [(&str, bool); 18] = [
    ("q", false),
    ("status", true),
    ("channel", true),
    ("imported_id", false),
    ("overdue", false),
    ("tracked", false),
    ("seen", false),
    ("seen_after", false),
    ("seen_before", false),
    ("contacted", false),
    ("contacted_after", false),
    ("contacted_before", false),
    ("created_since", false),
    ("created_before", false),
    ("campaign_hold", false),
    ("has_field", true),
    ("import", false),
    (IMPORT_EFFECT, false),
];
/// Only together with an import.
const IMPORT_EFFECT: &str = "import_effect";
/// The endings of parameters that are times.
pub const TIMES: [&str; 3] = ["_before", "_after", "_since"];
/// Parameters whose values may be joined by commas.
const JOINED: [&str; 2] = ["status", "channel"];
const KEYED: [&str; 2] = ["field.", "field_prefix."];
const SORT: &str = "sort";
const COLUMNS: &str = "columns";
const CURSOR: &str = "cursor";
/// The custom field in the form. Without a value it asks whether the field exists.
const FIELD_KEY: &str = "field_key";
const FIELD_VALUE: &str = "field_value";
const MAX_COLUMNS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The canonical parameters, without the cursor.
    pairs: Vec<(String, String)>,
    pub cursor: Option<String>,
}

impl Asked {
    /// Reads a query, and says whether its spelling was canonical.
    pub fn read(query: &Form) -> (Self, bool) {
        let given: Vec<(String, String)> =
            query.fields().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let cursor = query.given(CURSOR).map(str::to_owned);
        let asked = Self { pairs: spelled(query), cursor };
        let mut whole = asked.pairs.clone();
        whole.extend(asked.cursor.iter().map(|cursor| (CURSOR.to_owned(), cursor.clone())));
        (asked, whole == given)
    }

    pub fn of_query(query: &str) -> Self {
        Self::read(&Form::of_query(Some(query))).0
    }

    pub fn query(&self) -> String {
        let pairs = self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    }

    /// The address of the first page.
    pub fn href(&self) -> String {
        self.under(PATH)
    }

    pub fn under(&self, path: &str) -> String {
        let query = self.query();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    /// The address of this page.
    pub fn address(&self) -> String {
        match &self.cursor {
            Some(cursor) => self.page_href(cursor),
            None => self.href(),
        }
    }

    pub fn page_href(&self, cursor: &str) -> String {
        let href = self.href();
        // Cursors are letters and digits.
        format!("{href}{}{CURSOR}={cursor}", if href.contains('?') { '&' } else { '?' })
    }

    pub fn sorted_href(&self, sort: Sort) -> String {
        let mut pairs: Vec<(String, String)> =
            self.pairs.iter().filter(|(name, _)| name != SORT).cloned().collect();
        pairs.push((SORT.to_owned(), sort.as_str().to_owned()));
        Self::of_pairs(pairs).href()
    }

    /// The address without one filter.
    pub fn without(&self, name: &str, value: &str) -> String {
        let others = self.pairs.iter().filter(|(known, held)| known != name || held != value);
        Self::of_pairs(others.cloned().collect()).href()
    }

    /// The address with the same order and columns but no filters.
    pub fn unfiltered(&self) -> String {
        let others = self.pairs.iter().filter(|(name, _)| !is_filter(name));
        Self::of_pairs(others.cloned().collect()).href()
    }

    fn of_pairs(pairs: Vec<(String, String)>) -> Self {
        Self { pairs: spelled(&Form::of(&pairs)), cursor: None }
    }

    pub fn filters(&self) -> impl Iterator<Item = (&str, &str)> {
        let filters = self.pairs.iter().filter(|(name, _)| is_filter(name));
        filters.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Filters without a field in the form, which sends them as hidden fields.
    pub fn kept(&self) -> impl Iterator<Item = (&str, &str)> {
        const SHOWN_ELSEWHERE: [&str; 5] =
            ["imported_id", "campaign_hold", "has_field", "import", IMPORT_EFFECT];
        let is_kept = |name: &str| SHOWN_ELSEWHERE.contains(&name) || is_keyed(name);
        self.pairs
            .iter()
            .filter(move |(name, _)| is_kept(name))
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn has_filters(&self) -> bool {
        self.filters().next().is_some()
    }

    /// The number of filters, without the search, which is always visible.
    pub fn filter_count(&self) -> usize {
        self.filters().filter(|(name, _)| *name != "q").count()
    }

    pub fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The day of a time, for a date field.
    pub fn day(&self, name: &str) -> &str {
        self.value(name).get(..10).unwrap_or("")
    }

    pub fn has(&self, name: &str, value: &str) -> bool {
        self.pairs.iter().any(|(known, held)| known == name && held == value)
    }

    pub fn sort(&self) -> Sort {
        Sort::parse(self.value(SORT)).unwrap_or_default()
    }

    pub fn columns(&self) -> Vec<Column> {
        let chosen = self.pairs.iter().filter(|(name, _)| name == COLUMNS);
        let chosen: Vec<Column> = chosen.filter_map(|(_, word)| Column::parse(word)).collect();
        if chosen.is_empty() { Column::DEFAULT.to_vec() } else { chosen }
    }

    /// Parses the filter as the API does. Days are in the company's zone.
    pub fn filter(&self, zone: &TimeZone) -> Result<Filter, Problem> {
        let timed = |(name, value): (&str, &str)| {
            let is_time = TIMES.iter().any(|ending| name.ends_with(ending));
            let day = value.parse::<Date>().ok().filter(|_| is_time && value.len() == 10);
            let value = day.map_or_else(|| value.to_owned(), |day| Time::start_of_day(day, zone).to_string());
            (name.to_owned(), value)
        };
        let mut parameters = Parameters::of(self.filters().map(timed).collect());
        let filter = account_filter::read(&mut parameters);
        parameters.finish().map(|()| filter)
    }

    pub fn place(&self) -> Result<Option<Cursor>, Problem> {
        let cursor = self.cursor.iter().map(|cursor| (CURSOR.to_owned(), cursor.clone()));
        let mut parameters = Parameters::of(cursor.collect());
        let place = parameters.cursor(|text| Cursor::parse(text, self.sort()).ok());
        parameters.finish().map(|()| place)
    }
}

fn is_keyed(name: &str) -> bool {
    KEYED.iter().any(|prefix| name.starts_with(prefix))
}

fn is_filter(name: &str) -> bool {
    is_keyed(name) || FILTERS.iter().any(|(known, _)| *known == name)
}

/// The known, non-empty parameters, without repetition and in canonical order.
fn spelled(query: &Form) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: &str| {
        let pair = (name.to_owned(), value.trim().to_owned());
        if !pair.1.is_empty() && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    };
    let typed = query.all(FIELD_KEY).zip(query.all(FIELD_VALUE));
    let typed: Vec<(&str, &str)> =
        typed.map(|(key, value)| (key.trim(), value.trim())).filter(|(key, _)| !key.is_empty()).collect();
    for (name, is_repeated) in FILTERS {
        if JOINED.contains(&name) {
            query.all(name).flat_map(|value| value.split(',')).for_each(|value| add(name, value));
        } else if is_repeated {
            query.all(name).for_each(|value| add(name, value));
        } else if name != IMPORT_EFFECT || query.given("import").is_some() {
            add(name, query.all(name).find(|value| !value.trim().is_empty()).unwrap_or(""));
        }
    }
    typed.iter().filter(|(_, value)| value.is_empty()).for_each(|(key, _)| add("has_field", key));
    for (name, value) in query.fields().filter(|(name, _)| is_keyed(name)) {
        add(name, value);
    }
    for (key, value) in typed.iter().filter(|(_, value)| !value.is_empty()) {
        add(&format!("{}{key}", KEYED[0]), value);
    }
    if let Ok(sort) = Sort::parse(query.text(SORT))
        && sort != Sort::default()
    {
        add(SORT, sort.as_str());
    }
    let mut columns: Vec<Column> = Vec::new();
    for column in query.all(COLUMNS).filter_map(Column::parse) {
        if !columns.contains(&column) && columns.len() < MAX_COLUMNS {
            columns.push(column);
        }
    }
    if columns != Column::DEFAULT {
        columns.iter().for_each(|column| add(COLUMNS, &column.word()));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_app::read::accounts::By;

    #[test]
    fn an_address_has_one_spelling() {
        let table = [
            ("", ""),
            ("q=&status=&channel=&sort=-created_at", ""),
            ("status=lost,customer&q=+keller+", "q=keller&status=lost&status=customer"),
            ("nonsense=1&q=a&q=b&overdue=true", "q=a&overdue=true"),
            ("field_key=plan&field_value=pro", "field.plan=pro"),
            ("field_key=plan&field_value=", "has_field=plan"),
            (
                "field.a=1&field_key=plan&field_value=pro&field_prefix.b=x",
                "field.a=1&field_prefix.b=x&field.plan=pro",
            ),
            (
                "columns=status&columns=value&columns=channel&columns=last_seen&columns=last_contact&columns=created",
                "",
            ),
            ("columns=status&columns=nope&columns=field.a%2Cb", "columns=status&columns=field.a%2Cb"),
            ("sort=name&columns=created", "sort=name&columns=created"),
            ("import_effect=created&import=imp_1", "import=imp_1&import_effect=created"),
            ("import_effect=created", ""),
        ];
        for (given, spelled) in table {
            let (asked, is_right) = Asked::read(&Form::of_query(Some(given)));
            assert_eq!(asked.query(), spelled, "{given}");
            assert_eq!(is_right, given == spelled, "{given}");
            let (again, is_right) = Asked::read(&Form::of_query(Some(&asked.query())));
            assert!(is_right && again == asked, "{given} is redirected once");
        }
    }

    #[test]
    fn a_page_is_no_part_of_what_is_asked_for() {
        let (asked, is_right) = Asked::read(&Form::of_query(Some("status=lost&cursor=abc")));
        assert!(is_right);
        assert_eq!(asked.href(), "/accounts?status=lost");
        assert_eq!(asked.address(), "/accounts?status=lost&cursor=abc");
        assert_eq!(asked.sorted_href(By::Name.ascending()), "/accounts?status=lost&sort=name");
        assert_eq!(asked.without("status", "lost"), "/accounts");
        assert!(asked.place().is_err());
    }

    #[test]
    fn days_are_the_companys() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let asked = Asked::of_query("contacted_before=2026-05-12&seen_after=2026-05-12T08:30:00Z");
        let filter = asked.filter(&zone).unwrap();
        assert_eq!(filter.contacted_before.unwrap().to_string(), "2026-05-11T22:00:00Z");
        assert_eq!(filter.seen_after.unwrap().to_string(), "2026-05-12T08:30:00Z");
        let since = Asked::of_query("created_since=2026-05-12").filter(&zone).unwrap().created_since;
        assert_eq!(since.unwrap().to_string(), "2026-05-11T22:00:00Z");
        assert!(Asked::of_query("contacted_before=soon").filter(&zone).is_err());
        assert_eq!(asked.day("seen_after"), "2026-05-12");
    }
}
