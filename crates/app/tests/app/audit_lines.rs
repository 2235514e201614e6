//! The lines of the audit log in the service's log: one for each entry once it is committed, without names and details.

use std::io::{Result as Written, Write};

use parking_lot::Mutex;
use rapport_app::channel::CreateChannel;
use rapport_app::saved_view::SaveView;
use rapport_app::{Command, Context, Error, Needs, Origin};
use rapport_domain::audit::Filter;
use rapport_domain::device::Device;
use rapport_domain::request_id::RequestId;
use rapport_domain::saved_view::Save;
use rapport_store::Tx;
use rapport_testkit::{TestApp, block_on};
use serde_json::{Value, json};

use crate::refusal;

/// The lines that all tests in this program caused.
static LINES: Mutex<Vec<Value>> = Mutex::new(Vec::new());

struct Capture;

impl Write for Capture {
    fn write(&mut self, line: &[u8]) -> Written<usize> {
        LINES.lock().push(serde_json::from_slice(line).expect("a line is JSON"));
        Ok(line.len())
    }

    fn flush(&mut self) -> Written<()> {
        Ok(())
    }
}

fn capture() {
    let log = tracing_subscriber::fmt().json().with_env_filter("audit=info").with_writer(|| Capture);
    let _ = log.try_init();
}

/// The fields of the lines about one request.
fn lines_of(request: &str) -> Vec<Value> {
    let lines = LINES.lock();
    let of_request = lines.iter().filter(|line| line["fields"]["request_id"] == request);
    of_request
        .inspect(|line| assert_eq!(line["target"], "audit"))
        .map(|line| line["fields"].clone())
        .collect()
}

/// A command that is undone after it has done everything.
struct Undone<C>(C);

impl<C: Command> Command for Undone<C> {
    type Reply = ();
    const NEEDS: Needs = C::NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        self.0.run(tx, cx)?;
        Err(Error::NotFound("account"))
    }
}

#[test]
fn each_entry_is_a_line_once_it_is_committed_without_names_and_details() {
    capture();
    TestApp::on_both(|app| {
        let request = format!("lines-on-{}", app.engine());
        let id = RequestId::parse(request.as_bytes()).unwrap();
        let origin = Origin { address: "192.0.2.7".parse().unwrap(), request: id, device: Device::default() };
        let channel = |name: &str| CreateChannel { name: name.to_owned() };
        let undone = app.app().write_from(app.token(), Some(origin), Undone(channel("Hidden fair")));
        assert_eq!(refusal(block_on(undone)), "no such account");
        assert_eq!(lines_of(&request), [""; 0], "nothing was committed");

        let made = app.app().write_from(app.token(), Some(origin), channel("Hidden fair"));
        let made = block_on(made).unwrap();
        let (name, query) = ("Hidden view".to_owned(), "q=hidden".to_owned());
        let saved = SaveView(Save { name, query, replace: false });
        block_on(app.app().write_from(app.token(), Some(origin), saved)).unwrap();

        let entries = app.read(|snapshot| rapport_store::audit::list(snapshot, &Filter::default(), None, 2));
        let lines = lines_of(&request);
        let expected: Vec<Value> = entries
            .items
            .iter()
            .rev()
            .map(|entry| {
                json!({
                    "message": "recorded", "company": app.id().0, "entry": entry.id.to_string(),
                    "action": entry.action, "actor": "token", "actor_id": entry.actor.id_text(),
                    "client": "192.0.2.7", "request_id": request,
                })
            })
            .collect();
        let mut shown = lines.clone();
        assert_eq!(shown[0].as_object_mut().unwrap().remove("target_id"), Some(json!(made.id.to_string())));
        assert_eq!(shown, expected, "a view's name is no id");
        assert_eq!([&lines[0]["action"], &lines[1]["action"]], ["channel.created", "view.saved"]);
        assert!(!format!("{lines:?}").to_lowercase().contains("hidden"), "{lines:?}");
    });
}
