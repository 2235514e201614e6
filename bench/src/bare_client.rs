//! The raw limit of delivery: signed bodies posted to the same receivers without any storage, by a bare pooled
//! client (hyper over rustls) and by the service's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rapport_app::signature::SigningKey;
use rapport_domain::delivery::{Outcome, Reason};
use rapport_domain::destination::{AddressPolicy, Destination};
use rapport_domain::id::EventId;
use rapport_jobs::client::{Client, Limits, Post, tls_config};
use rapport_jobs::guard::{Guard, SystemResolver};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use crate::drive::per_second;
use crate::measure::now;
use crate::receiver::{Hosts, Receiver};

const CONNECTIONS: usize = 64;
const THREADS: usize = 2;
const SECRET: &str = "whs_0123456789abcdefghjkmnpqrstvwxyz";
const EVENT: &str = "account.status_changed";
const DELIVERY: &str = "dlv_0123456789abcdefghjkmnpqrs";

/// Posts per second of a bare client.
pub fn measure(receiver: &Receiver, body: &str, time: Duration) -> anyhow::Result<f64> {
    let tls = TlsConnector::from(Arc::new(tls_config(std::slice::from_ref(&receiver.certificate))));
    let (address, body) = (receiver.address(), Bytes::copy_from_slice(body.as_bytes()));
    in_tasks(time, |number| {
        let (tls, body) = (tls.clone(), body.clone());
        async move |end: Instant, posted: Arc<AtomicU64>| {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let stream = tls.connect(ServerName::from(address.ip()), stream).await?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            while Instant::now() < end {
                let request = Request::post(format!("/ok/{number}"))
                    .header("host", address.to_string())
                    .header("content-type", "application/json")
                    .header("x-service-signature", SigningKey::new(SECRET).sign(body.as_ref()).to_string())
                    .header("x-service-event", EVENT)
                    .header("x-service-delivery", DELIVERY)
                    .header("x-service-attempt", 1)
                    .body(Full::new(body.clone()))?;
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                anyhow::ensure!(response.status().is_success(), "the receiver refused");
                response.into_body().collect().await?;
                posted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }
    })
}

/// Posts per second of the service's own client, guard and records included.
pub fn measure_own(receiver: &Receiver, body: &str, time: Duration) -> anyhow::Result<f64> {
    let policy = AddressPolicy { allowed: vec!["127.0.0.0/8".parse()?] };
    let guard = Arc::new(Guard::new(policy, Arc::new(SystemResolver)));
    let tls = tls_config(std::slice::from_ref(&receiver.certificate));
    let client = Arc::new(Client::new(guard, tls, Limits::default(), TaskTracker::new()));
    let body: Arc<str> = body.into();
    in_tasks(time, |number| {
        let (client, body, url) =
            (Arc::clone(&client), Arc::clone(&body), receiver.url("ok", number, Hosts::One));
        async move |end: Instant, posted: Arc<AtomicU64>| {
            // Once for all attempts, as the service does it.
            let (destination, key) = (Destination::parse(&url), SigningKey::new(SECRET));
            while Instant::now() < end {
                let post = Post {
                    destination: &destination,
                    key: &key,
                    event: EVENT,
                    event_id: EventId::from_bytes([7; 16]),
                    delivery: DELIVERY.to_owned(),
                    number: 1,
                    payload: &body,
                    reason: Reason::Automatic,
                    started_at: now(),
                    headers: &[],
                };
                let attempt = client.attempt(post).await;
                let answered = matches!(attempt.outcome, Outcome::Answered { code: 200, .. });
                anyhow::ensure!(answered, "an attempt failed: {:?}", attempt.error);
                posted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }
    })
}

/// Runs one task per connection, and counts what they post in the second half of the time, once all are connected.
fn in_tasks<T, F>(time: Duration, mut task: impl FnMut(usize) -> T) -> anyhow::Result<f64>
where
    T: FnOnce(Instant, Arc<AtomicU64>) -> F,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let posted = Arc::new(AtomicU64::new(0));
    runtime()?.block_on(async {
        let middle = Instant::now() + time / 2;
        let end = middle + time / 2;
        let tasks: Vec<_> =
            (0..CONNECTIONS).map(|number| tokio::spawn(task(number)(end, Arc::clone(&posted)))).collect();
        tokio::time::sleep_until(middle).await;
        let before = posted.load(Ordering::Relaxed);
        tokio::time::sleep_until(end).await;
        let counted = posted.load(Ordering::Relaxed) - before;
        for task in tasks {
            task.await.context("a client's task panicked")??;
        }
        Ok(per_second(counted, time / 2))
    })
}

fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(THREADS).enable_all().build().context("a runtime for the clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clients_reach_the_receiver() {
        let receiver = Receiver::start(1).unwrap();
        let body = format!(r#"{{"id":"evt_1","created_at":"{}"}}"#, now());
        for rate in [
            measure(&receiver, &body, Duration::from_millis(600)).unwrap(),
            measure_own(&receiver, &body, Duration::from_millis(600)).unwrap(),
        ] {
            assert!(rate > 10.0, "{rate} posts a second");
        }
        assert!(receiver.arrivals.count() > 10);
    }
}
