//! Two nodes on one PostgreSQL database behind each proxy, restarted one after the other while clients write and read.
//! No request fails, and the clients keep their addresses.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use rapport_testkit::raw;
use serde_json::{Value, json};

use crate::addresses::{audited, bearer_of_new_company, is_limited};
use crate::caller::{Answer, Caller};
use crate::program::{Place, Service, wait_until};
use crate::proxies::{Kind, free_address};

const CLIENTS: u8 = 6;
/// How many requests are answered between two restarts.
const BETWEEN: usize = 200;
const MANY: usize = 400;

#[test]
fn behind_nginx_no_request_fails_while_nodes_restart() {
    restart_nodes_behind(Kind::Nginx);
}

#[test]
fn behind_caddy_no_request_fails_while_nodes_restart() {
    restart_nodes_behind(Kind::Caddy);
}

fn restart_nodes_behind(kind: Kind) {
    let place = Place::postgres();
    let bearer = bearer_of_new_company(&place);
    // The first node creates the key that the second one shares.
    let listen = [free_address(), free_address()];
    let first = serve(&place, &listen[0]);
    let beside = place.beside();
    let places = [&place, &beside];
    let mut nodes = [first, serve(&beside, &listen[1])];
    let proxy = kind.start(&[&listen[0], &listen[1]]);
    let load = Load::start(&proxy.address, &bearer);
    load.wait_for_more();
    for node in [0, 1, 0] {
        nodes[node].signal("TERM");
        assert_eq!(nodes[node].wait().code(), Some(0));
        load.wait_for_more();
        nodes[node] = serve(places[node], &listen[node]);
        // The proxy has to notice it before the other one stops.
        wait_until("the node to serve", || has_served_upserts(&nodes[node]) || load.has_failed());
        load.wait_for_more();
    }
    let written = load.finish();
    for (imported_id, upserts) in &written {
        let sql = format!("SELECT custom_fields FROM account WHERE imported_id = '{imported_id}'");
        let fields: Value = serde_json::from_str(&raw::ask(&place.database(), &sql)).unwrap();
        assert_eq!(
            fields["n"],
            json!(upserts),
            "{imported_id}: the last upsert that was acknowledged is stored"
        );
    }

    let mut caller = client(1, &proxy.address);
    assert_eq!(audited(&place, &mut caller, &bearer, &[("X-Forwarded-For", "9.9.9.9")]), caller.from());
    assert!(is_limited(&mut client(2, &proxy.address), MANY));
    assert!(!is_limited(&mut client(3, &proxy.address), 2), "another client is not affected");
}

fn client(number: u8, to: &str) -> Caller {
    Caller::new(Ipv4Addr::new(127, 0, 1, number), to)
}

fn serve(place: &Place, address: &str) -> Service {
    place.start(&mut place.command(&["serve", "--listen", address, "--trusted-proxy", "127.0.0.1"]))
}

fn has_served_upserts(node: &Service) -> bool {
    let figures = node.get("/metrics").1;
    figures.lines().any(|line| line.starts_with("rapport_http_requests_total") && line.contains("upsert"))
}

/// Clients that each send one request after another, and note every answer that isn't a success.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<(String, usize, Vec<String>)>>,
}

impl Load {
    fn start(address: &str, bearer: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let clients = (1..=CLIENTS).map(|number| {
            let (address, bearer) = (address.to_owned(), bearer.to_owned());
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            thread::spawn(move || {
                let mut caller = client(100 + number, &address);
                let (imported_id, mut upserts, mut failures) = (format!("crm-{number}"), 0, Vec::new());
                while !stop.load(Ordering::Relaxed) && failures.is_empty() {
                    let fields = json!({"n": upserts + 1});
                    let body =
                        json!({"project": "acme", "imported_id": imported_id, "custom_fields": fields});
                    let headers = [("Authorization", bearer.as_str())];
                    let sent = caller.post("/api/accounts/upsert-by-imported-id/", &headers, &body);
                    match sent {
                        Ok(answer) if answer.status < 300 => upserts += 1,
                        // A busy machine: nothing was saved, and the service said so itself.
                        Ok(Answer { status: 503, body, .. }) if body.contains(r#""busy""#) => {}
                        failed => failures.push(format!("upsert {upserts}: {failed:?}")),
                    }
                    let read = caller.send("GET", "/api/settings/", &headers, "");
                    match read {
                        Ok(answer) if answer.status == 200 => {}
                        Ok(Answer { status: 503, body, .. }) if body.contains(r#""busy""#) => {}
                        failed => failures.push(format!("read {upserts}: {failed:?}")),
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                (imported_id, upserts, failures)
            })
        });
        Self { clients: clients.collect(), stop, answered }
    }

    /// Waits until many more requests are answered, or one has failed.
    fn wait_for_more(&self) {
        let goal = self.answered.load(Ordering::Relaxed) + BETWEEN;
        wait_until("more answers", || self.answered.load(Ordering::Relaxed) >= goal || self.has_failed());
    }

    fn has_failed(&self) -> bool {
        self.clients.iter().any(JoinHandle::is_finished)
    }

    /// How many upserts were acknowledged for each account.
    fn finish(self) -> Vec<(String, usize)> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.clients.into_iter().map(|client| client.join().unwrap());
        ended
            .map(|(imported_id, upserts, failures)| {
                assert!(failures.is_empty(), "{imported_id}: {failures:#?}");
                (imported_id, upserts)
            })
            .collect()
    }
}
