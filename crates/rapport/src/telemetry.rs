//! Logging to standard error, and the metrics that `/metrics` serves.

use std::io::{IsTerminal as _, Write, stderr};

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rapport_app::App;
use rapport_app::metric::{self, Kind};
use tracing::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::Config;
use crate::log_line::OneLine;
use crate::option_value::LogFormat;
use crate::{backups, process};

/// Commands print their result, and log only problems.
const QUIET: &str = "warn";

pub fn log_of_service(config: &Config) {
    start_logging(config, config.log.value.as_str());
}

pub fn log_of_command(config: &Config) {
    let filter = if config.log.is_default() { QUIET } else { config.log.value.as_str() };
    start_logging(config, filter);
}

fn start_logging(config: &Config, filter: &str) {
    log_to(stderr, config.log_format.value, filter, stderr().is_terminal()).init();
}

/// A log that writes to what `open` returns.
fn log_to<W, F>(open: F, format: LogFormat, filter: &str, has_colours: bool) -> Dispatch
where
    W: Write,
    F: Fn() -> W + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter)).with_ansi(has_colours);
    match format {
        LogFormat::Text => builder.with_writer(move || OneLine { to: open(), has_colours }).finish().into(),
        LogFormat::Json => builder.with_writer(open).json().finish().into(),
    }
}

/// Starts collecting metrics. The handle renders them; its upkeep must be called now and then.
pub fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new();
    for metric in metric::TABLE {
        if let Kind::Histogram(bounds) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), bounds)?;
        }
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("metrics are already being collected")?;
    metric::register_all();
    Ok(handle)
}

/// Renders the metrics as text, after updating those that are read on demand.
pub fn render(handle: &PrometheusHandle, app: &App) -> String {
    update_store(app);
    update_jobs(app);
    backups::update_metrics(app);
    process::update();
    handle.render() + &process::cpu_line()
}

#[expect(clippy::cast_precision_loss, reason = "the queue and the log are far below 2^52")]
fn update_store(app: &App) {
    let figures = app.store().figures();
    metric::STORE_QUEUE_DEPTH.gauge([]).set(figures.waiting as f64);
    metric::STORE_FAILING.gauge([]).set(flag(app.store().health().is_err()));
    if let Some(log) = figures.log {
        metric::STORE_LOG_BYTES.gauge([]).set(log.bytes as f64);
        metric::STORE_BLOCKED_CHECKPOINTS.counter([]).absolute(log.blocked_checkpoints);
        metric::STORE_FAILED_CHECKPOINTS.counter([]).absolute(log.failed_checkpoints);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time in microseconds is below 2^52 for centuries")]
fn update_jobs(app: &App) {
    for (job, report) in app.services().jobs().all() {
        let succeeded = report.last_success.map_or(0.0, |time| time.as_micros() as f64 / 1e6);
        metric::JOB_LAST_SUCCESS.gauge([job.key().into()]).set(succeeded);
        metric::JOB_FAILING.gauge([job.key().into()]).set(flag(report.is_failing));
    }
}

const fn flag(is_set: bool) -> f64 {
    if is_set { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Keeps what is written.
    struct Kept(Sender<Vec<u8>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_forges_a_line_of_the_log() {
        let answer =
            "550 no\r\n2026-11-16T05:20:11Z  INFO audit: recorded action=\"forged\"\u{1b}[2K\u{2028}x";
        for format in [LogFormat::Text, LogFormat::Json] {
            let (sender, kept) = channel();
            let log = log_to(move || Kept(sender.clone()), format, "info", false);
            tracing::dispatcher::with_default(&log, || {
                let _span = tracing::info_span!("request", path = %answer).entered();
                tracing::warn!(error = %answer, detail = answer, "failed: {answer}");
                tracing::info!("second");
            });
            let text = String::from_utf8(kept.try_iter().flatten().collect()).unwrap();
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(text.ends_with('\n') && !text.contains(['\r', '\u{1b}']), "{text}");
            assert!(text.contains("550 no"), "{text}");
        }
    }
}
