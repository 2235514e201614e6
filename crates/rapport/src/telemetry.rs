//! Logging to standard error, and the metrics that `/metrics` serves.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rapport_app::App;
use rapport_app::metric::{self, Kind};
use tracing_subscriber::EnvFilter;

use crate::config::Config;
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
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match config.log_format.value {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
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
