//! Consumers that follow a list with a cursor, over every restart of the service, and keep what they read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rapport_domain::event::Kind;
use serde_json::Value;

use crate::client::{Client, Nodes, PAUSE, Request};
use crate::load::note;
use crate::scene::Credentials;

/// How long a consumer rests at the end of the list.
const REST: Duration = Duration::from_millis(20);

/// What a consumer keeps of the pages that it reads.
pub trait Keep: Default + Send + 'static {
    fn keep(&mut self, page: &Value);
    fn problems(&mut self) -> &mut Vec<String>;
}

pub struct Follower<T> {
    kept: Arc<Mutex<T>>,
    stop: Arc<AtomicBool>,
    ends: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl<T: Keep> Follower<T> {
    /// Follows the list at this path, which has a query already.
    pub fn start(credentials: &Credentials, nodes: &Nodes, path: &str) -> Self {
        let (kept, stop, ends) = (Arc::default(), Arc::default(), Arc::default());
        let thread = {
            let (kept, stop, ends) = (Arc::clone(&kept), Arc::clone(&stop), Arc::clone(&ends));
            let (client, path, headers) = (Client::new(nodes.clone()), path.to_owned(), credentials.bearer());
            thread::spawn(move || follow(client, &path, &headers, &stop, &ends, &kept))
        };
        Self { kept, stop, ends, thread }
    }

    /// How many times it was at the end of the list.
    pub fn ends(&self) -> usize {
        self.ends.load(Ordering::SeqCst)
    }

    pub fn look<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.kept.lock().unwrap())
    }

    pub fn finish(self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        std::mem::take(&mut *self.kept.lock().unwrap())
    }
}

fn follow<T: Keep>(
    mut client: Client,
    path: &str,
    headers: &str,
    stop: &AtomicBool,
    ends: &AtomicUsize,
    kept: &Mutex<T>,
) {
    let mut cursor: Option<String> = None;
    while !stop.load(Ordering::Relaxed) {
        let path =
            cursor.as_ref().map_or_else(|| path.to_owned(), |cursor| format!("{path}&cursor={cursor}"));
        let request = Request { method: "GET", path: &path, headers, body: None };
        match client.try_once(&request) {
            Some((200, answer)) => {
                let page: Value = serde_json::from_str(&answer).unwrap();
                kept.lock().unwrap().keep(&page);
                cursor = Some(page["next_cursor"].as_str().unwrap().to_owned());
                if page["has_more"] == false {
                    ends.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(REST);
                }
            }
            None | Some((429 | 503, _)) => thread::sleep(PAUSE),
            Some((status, answer)) => {
                note(kept.lock().unwrap().problems(), format!("GET {path}: {status} {answer}"));
                return;
            }
        }
    }
}

/// The events of a company, in the order in which they were read.
#[derive(Default)]
pub struct Events {
    pub ids: Vec<String>,
    pub problems: Vec<String>,
    /// The stage of each account that was created and not deleted, by what its events say.
    stages: HashMap<String, String>,
}

impl Keep for Events {
    fn keep(&mut self, page: &Value) {
        for event in page["items"].as_array().unwrap() {
            self.ids.push(text(&event["id"]));
            if let Err(problem) = self.apply(event) {
                note(&mut self.problems, format!("{problem}: {event}"));
            }
        }
    }

    fn problems(&mut self) -> &mut Vec<String> {
        &mut self.problems
    }
}

impl Events {
    /// The events of an account tell its story: it is created, moves from where it is, and is deleted.
    fn apply(&mut self, event: &Value) -> Result<(), &'static str> {
        let kind = event["type"].as_str().and_then(Kind::parse).ok_or("an unknown kind of event")?;
        let data = &event["data"];
        let account = text(&data["account"]["id"]);
        let stage = self.stages.get(&account);
        match kind {
            Kind::WebhookTest => {}
            Kind::AccountCreated => {
                let before = self.stages.insert(account, text(&data["account"]["status"]));
                return if before.is_none() { Ok(()) } else { Err("an account was created twice") };
            }
            Kind::AccountStatusChanged => {
                let is_next = stage.is_some_and(|stage| data["previous_status"] == stage.as_str());
                self.stages.insert(account, text(&data["status"]));
                return if is_next { Ok(()) } else { Err("an account left a stage that it wasn't in") };
            }
            Kind::AccountDeleted => {
                return self.stages.remove(&account).map(drop).ok_or("no account was there to delete");
            }
            Kind::AccountUpdated | Kind::MessageInbound | Kind::ClientContactDue | Kind::ContactLogged => {
                stage.ok_or("an account that isn't there")?;
            }
        }
        Ok(())
    }
}

/// A copy of the accounts, by id, and the deleted ones.
#[derive(Default)]
pub struct Accounts {
    pub present: BTreeMap<String, Value>,
    pub deleted: BTreeSet<String>,
    pub problems: Vec<String>,
}

impl Keep for Accounts {
    fn keep(&mut self, page: &Value) {
        for account in page["items"].as_array().unwrap() {
            self.present.insert(text(&account["id"]), account.clone());
        }
        for tombstone in page["deleted"].as_array().unwrap() {
            let id = text(&tombstone["id"]);
            self.present.remove(&id);
            if !self.deleted.insert(id) {
                note(&mut self.problems, format!("deleted twice: {tombstone}"));
            }
        }
    }

    fn problems(&mut self) -> &mut Vec<String> {
        &mut self.problems
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
