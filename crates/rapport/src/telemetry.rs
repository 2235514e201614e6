//! Logging to standard error, and the metrics that `/metrics` serves.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::Config;
use crate::option_value::LogFormat;

/// Commands print their result, and log only problems.
const QUIET: &str = "warn";
/// In seconds: from a tenth of a millisecond, which an embedded database can reach, to a time limit.
const BUCKETS: [f64; 14] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

const LOG_BYTES: &str = "rapport_store_log_bytes";
const BLOCKED_CHECKPOINTS: &str = "rapport_store_blocked_checkpoints_total";
const FAILED_CHECKPOINTS: &str = "rapport_store_failed_checkpoints_total";

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
    let recorder = PrometheusBuilder::new().set_buckets(&BUCKETS)?.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("metrics are already being collected")?;
    metrics::describe_gauge!("rapport_build_info", "Always 1; the labels identify the running version.");
    metrics::gauge!("rapport_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    metrics::describe_gauge!("rapport_store_queue_depth", "Changes waiting for the database.");
    metrics::describe_gauge!(LOG_BYTES, "Bytes in SQLite's write-ahead log.");
    metrics::describe_counter!(
        BLOCKED_CHECKPOINTS,
        "Checkpoints of a long log that a reader's snapshot blocked."
    );
    metrics::describe_counter!(FAILED_CHECKPOINTS, "Checkpoints that failed.");
    Ok(handle)
}

/// Renders the metrics as text, after updating those that are read on demand.
pub fn render(handle: &PrometheusHandle, app: &rapport_app::App) -> String {
    let figures = app.store().figures();
    #[expect(clippy::cast_precision_loss, reason = "the queue is bounded far below 2^52")]
    metrics::gauge!("rapport_store_queue_depth").set(figures.waiting as f64);
    if let Some(log) = figures.log {
        #[expect(clippy::cast_precision_loss, reason = "the log is far below 2^52 bytes")]
        metrics::gauge!(LOG_BYTES).set(log.bytes as f64);
        metrics::counter!(BLOCKED_CHECKPOINTS).absolute(log.blocked_checkpoints);
        metrics::counter!(FAILED_CHECKPOINTS).absolute(log.failed_checkpoints);
    }
    handle.render()
}
