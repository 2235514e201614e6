//! Everything that a company stored, as a file.

use axum::response::Response;
use rapport_app::company_export::{EXTENSION, MEDIA_TYPE, Place, Rows, end, head, lines, page};
use rapport_app::{Access, Answer, App, Error};

use crate::shared::COMPANY;
use crate::shared::paged_file::{self, Label, Part, Source};

/// The beginning of an export: its first page.
pub async fn begin(app: &App, access: &Access) -> Result<Answer<Rows>, Error> {
    app.read(access, COMPANY, |snapshot, _| page(snapshot, &Place::FIRST)).await
}

/// The export as a response. The file name consists of the company's short name and the date.
pub fn respond(app: &App, access: Access, begun: Answer<Rows>) -> Response {
    let Answer { reply, company, now } = begun;
    let label = Label {
        name: company.slug.as_str(),
        day: now.day_in(&company.settings.time_zone),
        extension: EXTENSION,
        media_type: MEDIA_TYPE,
    };
    let Part { text, next } = part(reply, 0);
    let first = Part { text: [head(&company, now), text].concat(), next };
    paged_file::respond(&label, first, File { app: app.clone(), access })
}

/// Where a page begins, and how many rows come before it.
#[derive(Debug, Clone)]
struct Begin {
    place: Place,
    rows: u64,
}

fn part(Rows { table, rows, next }: Rows, before: u64) -> Part<Begin> {
    let count = before + rows.len() as u64;
    let mut text = lines(table, rows);
    if next.is_none() {
        text.extend(end(count));
    }
    Part { text, next: next.map(|place| Begin { place, rows: count }) }
}

struct File {
    app: App,
    access: Access,
}

impl Source for File {
    type Place = Begin;

    async fn part(&self, Begin { place, rows }: Begin) -> Result<Part<Begin>, Error> {
        let found = self.app.read(&self.access, COMPANY, move |snapshot, _| page(snapshot, &place)).await?;
        Ok(part(found.reply, rows))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rows(next: Option<Place>) -> Rows {
        let row = json!({"name": "a\nb"});
        Rows { table: "account", rows: vec![row.as_object().unwrap().clone(); 2], next }
    }

    #[test]
    fn only_the_last_page_says_that_the_file_is_complete() {
        let first = part(rows(Some(Place::FIRST)), 5);
        assert_eq!(first.next.map(|next| next.rows), Some(7));
        let last = part(rows(None), 7);
        assert!(last.next.is_none());
        let lines = |text: &[u8]| -> Vec<Value> {
            let text = std::str::from_utf8(text).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        assert_eq!(lines(&first.text), vec![json!({"table": "account", "row": {"name": "a\nb"}}); 2]);
        assert_eq!(lines(&last.text).last(), Some(&json!({"end": true, "rows": 9})));
    }
}
