//! What is stored about the person who asks, as one JSON object. Its records are read page by page.

use axum::response::Response;
use rapport_app::read::own_data::{Place, Records, records};
use rapport_app::{Access, Answer, App, Error};
use serde_json::{Map, Value};

use crate::shared::READ;
use crate::shared::paged_file::{self, Label, Part, Source};

const FILE_NAME: &str = "my data";

/// The object as a response: what is known of the login, and after it the records.
pub fn respond(app: &App, access: Access, login: Answer<Map<String, Value>>) -> Response {
    let Answer { reply, company, now } = login;
    let label = Label {
        name: FILE_NAME,
        day: now.day_in(&company.settings.time_zone),
        extension: "json",
        media_type: "application/json",
    };
    let first = Part { text: head(reply), next: Some(Begin { place: Place::FIRST, is_first: true }) };
    paged_file::respond(&label, first, File { app: app.clone(), access })
}

/// Where a page begins, and whether records come before it.
#[derive(Debug, Clone)]
struct Begin {
    place: Place,
    is_first: bool,
}

/// The object up to its first record.
fn head(login: Map<String, Value>) -> Vec<u8> {
    let mut text = Value::Object(login).to_string();
    text.pop();
    text.push_str(",\"records\":[");
    text.into_bytes()
}

fn part(Records { items, next }: Records, mut is_first: bool) -> Part<Begin> {
    let mut text = Vec::new();
    for item in items {
        if !is_first {
            text.push(b',');
        }
        text.extend(item.to_string().into_bytes());
        is_first = false;
    }
    if next.is_none() {
        text.extend(b"]}\n");
    }
    Part { text, next: next.map(|place| Begin { place, is_first }) }
}

struct File {
    app: App,
    access: Access,
}

impl Source for File {
    type Place = Begin;

    async fn part(&self, Begin { place, is_first }: Begin) -> Result<Part<Begin>, Error> {
        let found = self
            .app
            .read(&self.access, READ, move |snapshot, viewer| records(snapshot, viewer, place))
            .await?;
        Ok(part(found.reply, is_first))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pages_are_one_object() {
        let login = json!({"login": {"name": "Ana"}});
        let page = |numbers: &[i64], next| Records {
            items: numbers.iter().map(|number| json!({ "row": number })).collect(),
            next,
        };
        for pages in [vec![vec![], vec![1, 2], vec![], vec![3]], vec![vec![]], vec![vec![1], vec![]]] {
            let mut text = head(login.as_object().unwrap().clone());
            let mut is_first = true;
            for (number, rows) in pages.iter().enumerate() {
                let next = (number + 1 < pages.len()).then_some(Place::FIRST);
                let Part { text: more, next } = part(page(rows, next), is_first);
                text.extend(more);
                is_first = next.is_some_and(|next| next.is_first);
            }
            let object: Value = serde_json::from_slice(&text).unwrap();
            let rows: Vec<i64> = pages.concat();
            let found =
                object["records"].as_array().unwrap().iter().map(|record| record["row"].as_i64().unwrap());
            assert_eq!((found.collect::<Vec<i64>>(), &object["login"]["name"]), (rows, &json!("Ana")));
        }
    }
}
