//! CSV import: a large file is uploaded, tried, imported and undone, and how much memory that takes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::Plan;
use crate::core_part::PROJECT;
use crate::measure::{Usage, Watch};
use crate::place::{Engine, Ground};
use crate::report::{Report, Row, Target, whole};
use crate::service::{self, Service};

const ROWS_PER_WRITE: u64 = 1_000;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const MOST_MEMORY_MB: f64 = 200.0;
/// How much memory the second half may take, relative to the first.
const MOST_GROWTH: f64 = 1.25;
const HEADER: &str = "Record ID,Company,Stage,Value,Currency,Plan\n";

pub fn run(plan: &Plan, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    let rows = plan.import_rows;
    report.heading(&format!("{engine}, import of {rows} rows"));
    let ground = Ground::prepare(engine);
    let place = ground.fresh()?;
    let credentials = service::create_company(plan, &place, PROJECT)?;
    let service = Service::start(plan, &place)?;
    let client = Client { address: service.address, token: credentials.api_token };

    let (import, seconds, usage) = measured(&service, || client.upload(rows))?;
    report.add(row("upload", rows, seconds, &usage));
    let path = format!("/api/imports/{}/", import["id"].as_str().context("an import's id")?);

    for (what, action, ended) in
        [("dry run", "preview/", "uploaded"), ("run, all rows new", "start/", "finished")]
    {
        let (_, seconds, usage) = measured(&service, || {
            client.post(&format!("{path}{action}"))?;
            client.until(&path, |import| import["state"] == ended)
        })?;
        report.add(row(what, rows, seconds, &usage));
        check(engine, what, &usage, report);
    }
    let stored = place.count("SELECT count(*) FROM account")?;
    let missing = i64::try_from(rows)? - stored;
    report.check(
        format!("{engine}: imported rows that are not stored exactly once"),
        f64::from(i32::try_from(missing.abs())?),
        Target::AtMost(0.0),
    );

    // As far as it gets in one window: the rate stays the same to the end.
    let begun = Instant::now();
    let (undone, seconds, usage) = measured(&service, || {
        client.post(&format!("{path}undo/"))?;
        client.until(&path, |import| import["state"] == "undone" || begun.elapsed() > plan.window)
    })?;
    let done = undone["undo"]["done"].as_u64().unwrap_or(0);
    report.add(row("undo, accounts removed", done, seconds, &usage));
    service.stop()
}

fn measured<T>(
    service: &Service,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, f64, Usage)> {
    let watch = Watch::start(service.process());
    let started = Instant::now();
    let done = work()?;
    Ok((done, started.elapsed().as_secs_f64(), watch.finish()))
}

fn row(what: &str, rows: u64, seconds: f64, usage: &Usage) -> Row {
    Row::new(format!("import: {what}"))
        .with("rate", whole(rows) / seconds)
        .with("seconds", seconds)
        .usage(usage)
}

fn check(engine: Engine, what: &str, usage: &Usage, report: &mut Report) {
    report.check(
        format!("{engine}: RSS in MB during the import's {what}"),
        usage.peak_memory,
        Target::AtMost(MOST_MEMORY_MB),
    );
    let [first, second] = usage.peak_of_halves;
    report.check(
        format!("{engine}: RSS of the second half of the import's {what} relative to the first"),
        second / first.max(1.0),
        Target::AtMost(MOST_GROWTH),
    );
}

struct Client {
    address: SocketAddr,
    token: String,
}

impl Client {
    /// Creates the file while it is sent.
    fn upload(&self, rows: u64) -> anyhow::Result<Value> {
        let length = HEADER.len() as u64 + (0..rows).map(|number| line(number).len() as u64).sum::<u64>();
        let mut stream = self.open("POST", "/api/imports/?filename=bench.csv", "text/csv", length)?;
        stream.write_all(HEADER.as_bytes())?;
        let mut number = 0;
        while number < rows {
            let end = (number + ROWS_PER_WRITE).min(rows);
            stream.write_all((number..end).map(line).collect::<String>().as_bytes())?;
            number = end;
        }
        answer(stream)
    }

    fn post(&self, path: &str) -> anyhow::Result<Value> {
        let mut stream = self.open("POST", path, "application/json", 2)?;
        stream.write_all(b"{}")?;
        answer(stream)
    }

    fn until(&self, path: &str, done: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        loop {
            let import = answer(self.open("GET", path, "application/json", 0)?)?;
            if done(&import) {
                return Ok(import);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn open(&self, method: &str, path: &str, media_type: &str, length: u64) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address).context("connecting to the service")?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench.test\r\nconnection: close\r\ncontent-type: {media_type}\r\n\
             authorization: Bearer {}\r\ncontent-length: {length}\r\n\r\n",
            self.token
        );
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    }
}

fn answer(mut stream: TcpStream) -> anyhow::Result<Value> {
    let mut text = String::new();
    stream.read_to_string(&mut text).context("reading the service's answer")?;
    let (head, body) = text.split_once("\r\n\r\n").context("a head and a body")?;
    ensure!(head.starts_with("HTTP/1.1 2"), "the service answered {text}");
    Ok(serde_json::from_str(body)?)
}

fn line(number: u64) -> String {
    const STAGES: [&str; 4] = ["Prospect", "Contacted", "In trial", "Customer"];
    let stage = STAGES[usize::try_from(number % 4).unwrap_or(0)];
    format!(
        "CRM-{number:08},\"Company, number {number}\",{stage},{}.50,EUR,plan {}\n",
        number % 5_000,
        number % 7
    )
}
