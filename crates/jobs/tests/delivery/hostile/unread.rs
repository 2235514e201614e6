//! Requests too large for the network's buffers, sent to receivers that don't read them: the client's writes
//! block, and its connection must still end.

use std::sync::Arc;
use std::time::Duration;

use rapport_app::signature::SigningKey;
use rapport_domain::delivery::{Attempt, Failure, Outcome, Reason};
use rapport_domain::destination::{AddressPolicy, Destination};
use rapport_domain::id::EventId;
use rapport_domain::time::Time;
use rapport_jobs::client::Post;
use rapport_jobs::{Client, Guard, Limits};
use rapport_testkit::{Hostile, Identity, Opening, Step};
use tokio_util::task::TaskTracker;

use crate::harness::{Names, eventually, trusting_receivers};

/// Far more than both ends buffer.
const LARGE: usize = 16 << 20;
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Makes one attempt with a large payload, after which no connection may remain.
fn attempt(steps: Vec<Step>, limits: Limits) -> Attempt {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let allowed = vec!["127.0.0.0/8".parse().expect("a network")];
    let guard = Arc::new(Guard::new(AddressPolicy { allowed }, Arc::new(Names::default())));
    let connections = TaskTracker::new();
    let client = Client::new(guard, trusting_receivers(), limits, connections.clone());
    let receiver = Hostile::start(Opening::Tls(Identity::Trusted), steps);
    let (url, payload) = (receiver.url("/hook"), "x".repeat(LARGE));
    let attempt = runtime.block_on(async {
        let post = Post {
            destination: &Destination::parse(&url),
            key: &SigningKey::new("whs_secret"),
            event: "webhook.test",
            event_id: EventId::from_bytes([0; 16]),
            delivery: "dlv_1".to_owned(),
            number: 1,
            payload: &payload,
            reason: Reason::Automatic,
            started_at: Time::from_micros(0),
            headers: &[],
        };
        client.attempt(post).await
    });
    drop(client);
    eventually("the connection to be closed", || connections.is_empty().then_some(()));
    attempt
}

#[test]
fn a_large_request_that_nobody_reads_is_given_up() {
    let limits = Limits { connect: Duration::from_secs(5), total: Duration::from_secs(2) };
    let attempt = attempt(vec![Step::Ignore], limits);
    assert_eq!(attempt.outcome, Outcome::Failed(Failure::Timeout));
    assert_eq!(attempt.error.as_deref(), Some("no response within 2 s"));
}

#[test]
fn an_answer_counts_although_the_request_was_not_read() {
    let limits = Limits { connect: Duration::from_secs(5), total: Duration::from_mins(1) };
    let attempt = attempt(vec![Step::Read(1), Step::send(OK), Step::Ignore], limits);
    assert_eq!(attempt.outcome, Outcome::Answered { code: 200, retry_after: None });
    assert_eq!((attempt.error, attempt.excerpt), (None, b"ok".to_vec()));
}
