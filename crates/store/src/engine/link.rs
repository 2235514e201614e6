//! One connection to PostgreSQL that never waits forever.
//!
//! A thread of the engine drives its connection on its own small runtime and sleeps until the response
//! arrives, like the library's synchronous client. While it waits, it also checks on the server: a network, a
//! proxy or a stopped server can go silent without ever closing a connection, and then neither a response nor
//! an error would arrive. A connection is abandoned
//! - when the server says, over a second connection, that it isn't running anything for this one;
//! - when the server doesn't respond on a second connection either;
//! - when a statement outlives the server's own `statement_timeout`, whatever the server says.
//!
//! The kernel ends connections whose packets are lost (keep-alive, user timeout). An abandoned connection is
//! dropped without a goodbye, which would wait again.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Connection, Row, SimpleQueryMessage, Socket, Statement};

use super::postgres::address::{Address, CONNECT_LIMIT, TlsStream};
use super::sql_state;
use crate::error::Error;

/// How long a statement may take before we ask the server about it.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval between two such questions.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How many times in a row a second connection may fail to get an answer while a statement without a limit runs:
/// an upgrade that has worked for an hour may keep the server's disk busy, and must not be given up lightly.
const UNANSWERED_WITHOUT_LIMIT: u32 = 12;
/// How many times the server must say that it is idle, since a response may just be on its way to us.
const IDLE_ANSWERS: u32 = 2;
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

pub struct Link {
    runtime: Runtime,
    address: Address,
    /// Runs on every new connection.
    session: &'static str,
    /// The limit for a statement, if there is one.
    limit: Option<Duration>,
    open: Option<Open>,
    /// Whether the last statement failed because another transaction was in its way.
    was_blocked: bool,
}

struct Open {
    client: Client,
    connection: Connection<Socket, TlsStream>,
    /// The server's process id for this connection.
    backend: i32,
}

/// How waiting for a response ended.
enum Ended<T> {
    Answered(Result<T, tokio_postgres::Error>),
    Closed(Option<tokio_postgres::Error>),
    GivenUp(GivenUp),
}

/// Why a connection was abandoned.
enum GivenUp {
    Idle,
    NoAnswer,
    Limit,
}

impl GivenUp {
    fn reason(&self) -> &'static str {
        match self {
            Self::Idle => "the connection went silent",
            Self::NoAnswer => "the server is not responding",
            Self::Limit => "the statement took too long",
        }
    }
}

impl Link {
    /// A link to the server at this URL. Doesn't connect yet.
    pub fn to(url: &str, session: &'static str, limit: Option<Duration>) -> Result<Self, Error> {
        Self::new(&Address::parse(url).map_err(Error::Unavailable)?, session, limit)
    }

    /// Doesn't connect yet.
    pub fn new(address: &Address, session: &'static str, limit: Option<Duration>) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(Self { runtime, address: address.clone(), session, limit, open: None, was_blocked: false })
    }

    /// Whether there is a connection, as far as we know without asking.
    pub fn is_open(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.client.is_closed())
    }

    pub fn connect(&mut self) -> Result<(), Error> {
        self.open = None;
        let opening = open(&self.address, self.session);
        match self.runtime.block_on(async { timeout(CONNECT_LIMIT, opening).await }) {
            Ok(Ok(open)) => {
                self.open = Some(open);
                Ok(())
            }
            // Whatever the error is (a wrong password, no such database), nothing can be stored now.
            Ok(Err(error)) => Err(Error::Unavailable(self.address.explained(&error))),
            Err(_) => Err(Error::Unavailable(format!(
                "no connection within {} seconds: the server is not responding",
                CONNECT_LIMIT.as_secs()
            ))),
        }
    }

    /// Drops the connection. The server rolls back its open transaction.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Runs several statements without parameters.
    pub fn batch(&mut self, sql: &str) -> Result<(), Error> {
        self.run(async |client| client.batch_execute(sql).await)
    }

    /// Runs several statements without parameters; returns the number in the last row.
    pub fn last_number(&mut self, sql: &str) -> Result<Option<i64>, Error> {
        Ok(self.last_text(sql)?.and_then(|number| number.parse().ok()))
    }

    /// The same; returns the first text in the last row.
    pub fn last_text(&mut self, sql: &str) -> Result<Option<String>, Error> {
        let answers = self.run(async |client| client.simple_query(sql).await)?;
        Ok(answers.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    /// Runs a query without parameters; returns the first value of the first row, unless that is null.
    pub fn first_text(&mut self, sql: &str) -> Result<Option<String>, Error> {
        let answers = self.run(async |client| client.simple_query(sql).await)?;
        Ok(first_cell(&answers).map(str::to_owned))
    }

    /// Whether the last statement failed because another transaction held a lock: it can succeed later. A unique
    /// key that was taken is also [`Error::Again`], but needn't ever be free.
    pub fn was_blocked(&self) -> bool {
        self.was_blocked
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Statement, Error> {
        self.run(async |client| client.prepare(sql).await)
    }

    pub fn query(&mut self, statement: &Statement, values: Parameters) -> Result<Vec<Row>, Error> {
        self.run(async |client| client.query(statement, values).await)
    }

    pub fn execute(&mut self, statement: &Statement, values: Parameters) -> Result<u64, Error> {
        self.run(async |client| client.execute(statement, values).await)
    }

    /// Hands out what a `COPY … TO STDOUT` returns, until `take` fails. The link is of no use after that.
    pub fn copy_out<E>(
        &mut self,
        sql: &str,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, Error> {
        self.run(async |client| {
            let mut parts = pin!(client.copy_out(sql).await?);
            while let Some(part) = parts.next().await {
                if let Err(error) = take(&part?) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })
    }

    /// Sends what `next` returns to a `COPY … FROM STDIN`. If `next` fails, nothing is stored, and the link is
    /// of no use after that.
    pub fn copy_in<E>(
        &mut self,
        sql: &str,
        mut next: impl FnMut() -> Result<Option<Bytes>, E>,
    ) -> Result<Result<(), E>, Error> {
        self.run(async |client| {
            let mut sink = pin!(client.copy_in::<_, Bytes>(sql).await?);
            loop {
                match next() {
                    Ok(Some(part)) => sink.feed(part).await?,
                    Ok(None) => break,
                    Err(error) => return Ok(Err(error)),
                }
            }
            sink.finish().await?;
            Ok(Ok(()))
        })
    }

    /// Waits for a response until there is no point in waiting any longer.
    fn run<T>(
        &mut self,
        ask: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        let Some(open) = self.open.as_mut() else {
            return Err(Error::Unavailable("the connection was lost".to_owned()));
        };
        let Open { client, connection, backend } = open;
        let (address, limit, backend) = (&self.address, self.limit, *backend);
        let ended = self.runtime.block_on(async {
            let mut answer = pin!(ask(client));
            let mut patience = pin!(out_of_patience(address, backend, limit));
            poll_fn(|cx| {
                let closed = poll_closed(connection, cx);
                if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                    return Poll::Ready(match (answer, closed) {
                        // The library would only say "closed"; the connection knows why.
                        (Err(error), Poll::Ready(reason)) if error.is_closed() => Ended::Closed(reason),
                        (answer, _) => Ended::Answered(answer),
                    });
                }
                match closed {
                    Poll::Ready(reason) => Poll::Ready(Ended::Closed(reason)),
                    Poll::Pending => patience.as_mut().poll(cx).map(Ended::GivenUp),
                }
            })
            .await
        });
        match ended {
            Ended::Answered(answer) => answer.map_err(|error| {
                if sql_state::ends_the_session(&error) {
                    self.open = None;
                }
                self.was_blocked = sql_state::is_blocked(&error);
                sql_state::classify(&error)
            }),
            Ended::Closed(reason) => {
                self.open = None;
                let reason = reason.as_ref().map(sql_state::described);
                Err(Error::Unavailable(reason.unwrap_or_else(|| "the connection was closed".to_owned())))
            }
            Ended::GivenUp(why) => {
                self.give_up(&why);
                Err(Error::Unavailable(why.reason().to_owned()))
            }
        }
    }

    fn give_up(&mut self, why: &GivenUp) {
        let Some(open) = self.open.take() else { return };
        if matches!(why, GivenUp::Limit) {
            // The server may still be working and holding locks: ask it to stop while the next connection is
            // made.
            let (cancel, tls) = (open.client.cancel_token(), self.address.tls());
            self.runtime.spawn(async move {
                let _ = timeout(CANCEL_LIMIT, cancel.cancel_query(tls)).await;
            });
        }
    }
}

async fn open(address: &Address, session: &str) -> Result<Open, tokio_postgres::Error> {
    let (client, mut connection) = address.connect().await?;
    let sql = format!("{session}; SELECT pg_backend_pid()");
    let answers = drive(&mut connection, client.simple_query(&sql)).await?;
    let backend = first_cell(&answers).and_then(|number| number.parse().ok()).unwrap_or(0);
    Ok(Open { client, connection, backend })
}

/// Waits for a response on a connection that nothing else drives.
async fn drive<T>(
    connection: &mut Connection<Socket, TlsStream>,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, tokio_postgres::Error> {
    let mut answer = pin!(answer);
    poll_fn(|cx| {
        // If the connection is closed, it has dropped the request, which then returns an error.
        let _ = poll_closed(connection, cx);
        answer.as_mut().poll(cx)
    })
    .await
}

/// Moves data in both directions; ready once the connection has ended.
fn poll_closed(
    connection: &mut Connection<Socket, TlsStream>,
    cx: &mut Context<'_>,
) -> Poll<Option<tokio_postgres::Error>> {
    loop {
        match connection.poll_message(cx) {
            // Notices aren't for us.
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(error)),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        }
    }
}

/// Completes when there is no point in waiting for a response any longer.
async fn out_of_patience(address: &Address, backend: i32, limit: Option<Duration>) -> GivenUp {
    let since = Instant::now();
    // With several hosts, a second connection may reach another server, which knows nothing about this one.
    let may_ask = address.is_one_server();
    let most_unanswered = if limit.is_some() { 1 } else { UNANSWERED_WITHOUT_LIMIT };
    let (mut idle, mut unanswered) = (0, 0);
    let mut wait = PATIENCE;
    loop {
        sleep(wait).await;
        if limit.is_some_and(|limit| since.elapsed() >= limit) {
            return GivenUp::Limit;
        }
        if may_ask {
            match timeout(CONNECT_LIMIT, is_idle(address, backend, idle + 1 >= IDLE_ANSWERS)).await {
                Ok(Ok(true)) => (idle, unanswered) = (idle + 1, 0),
                // A server that refuses us (too many connections, for example) is responding.
                Ok(_) => (idle, unanswered) = (0, 0),
                Err(_) => unanswered += 1,
            }
            if idle >= IDLE_ANSWERS {
                return GivenUp::Idle;
            }
            if unanswered >= most_unanswered {
                return GivenUp::NoAnswer;
            }
        }
        wait = ASK_AGAIN_AFTER;
    }
}

/// Asks the server, over another connection, whether it is waiting for us just as we are waiting for it.
/// `end` also ends the session, so that its locks don't block others until the server's own timeouts.
async fn is_idle(address: &Address, backend: i32, end: bool) -> Result<bool, tokio_postgres::Error> {
    let (client, mut connection) = address.connect().await?;
    let sql = format!(
        "SELECT coalesce((SELECT state FROM pg_stat_activity WHERE pid = {backend}), 'gone') \
         IN ('idle', 'idle in transaction', 'idle in transaction (aborted)', 'gone')"
    );
    let answers = drive(&mut connection, client.simple_query(&sql)).await?;
    let idle = first_cell(&answers) == Some("t");
    if idle && end {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid = {backend} AND application_name = 'rapport' AND state <> 'active'"
        );
        drive(&mut connection, client.simple_query(&sql)).await?;
    }
    Ok(idle)
}

fn first_cell(answers: &[SimpleQueryMessage]) -> Option<&str> {
    answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    })
}
