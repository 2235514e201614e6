//! The table of metrics. docs/metrics.md repeats it, and a test compares the two.

use super::Kind::{Counter, FractionalCounter, Gauge, Histogram};
use super::Values::{Among, Only};
use super::{Label, Metric, Unit};
use crate::job_report::Job;

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// In seconds: from a tenth of a millisecond, which an embedded database can reach, to a time limit.
const QUICK: &[f64] =
    &[0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// In seconds: from one request over a good network to several days of retries.
const PATIENT: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 28_800.0,
    86_400.0, 259_200.0,
];

const JOBS: &[&str] = &{
    let mut keys = [""; Job::ALL.len()];
    let mut n = 0;
    while n < keys.len() {
        keys[n] = Job::ALL[n].key();
        n += 1;
    }
    keys
};

const PATH: Label =
    Label { name: "path", values: Among { what: "the route's template, or `unmatched`", first: "/metrics" } };
const METHOD: Label =
    Label { name: "method", values: Among { what: "the method, or `OTHER`", first: "GET" } };
/// Not `job`: Prometheus itself gives every series a label of that name.
const JOB: Label = Label { name: "name", values: Only(JOBS) };
const ATTEMPT_OUTCOME: Label =
    Label { name: "outcome", values: Only(&["succeeded", "retried", "failed", "own_fault"]) };

macro_rules! metrics {
    ($($metric:ident: $name:literal, $kind:expr, $unit:ident, [$($label:expr),*], $help:literal;)+) => {
        $(pub static $metric: Metric =
            Metric { name: $name, kind: $kind, unit: Unit::$unit, labels: &[$($label),*], help: $help };)+

        /// Every metric, in the order of the documentation.
        pub static TABLE: &[&Metric] = &[$(&$metric),+];
    };
}

metrics! {
    BUILD_INFO: "rapport_build_info", Gauge, One,
        [Label { name: "version", values: Among { what: "the running version", first: VERSION } }],
        "Always 1; the label is the running version.";

    HTTP_REQUESTS: "rapport_http_requests_total", Counter, One,
        [PATH, METHOD, Label { name: "status", values: Among { what: "the status code", first: "200" } }],
        "Requests served.";
    HTTP_REQUEST_SECONDS: "rapport_http_request_seconds", Histogram(QUICK), Seconds,
        [PATH, METHOD, Label { name: "class", values: Among { what: "`2xx`, `3xx`, `4xx` or `5xx`", first: "2xx" } }],
        "Time from a request's head to its response, without sending the response's body.";
    HTTP_CONNECTIONS_REFUSED: "rapport_http_connections_refused_total", Counter, One, [],
        "Connections refused because their address had too many.";

    INGEST_EVENTS: "rapport_ingest_events_total", Counter, One,
        [Label { name: "outcome", values: Only(&["accepted", "duplicate", "unmatched", "rejected"]) }],
        "Activity events received.";
    INBOUND_MAILS: "rapport_inbound_mails_total", Counter, One,
        [Label {
            name: "outcome",
            values: Only(&[
                "inbound", "outbound", "duplicate", "no_sender", "members_only", "former_member", "automatic",
            ]),
        }],
        "Mails received: logged as inbound or outbound, or ignored and why.";
    CONTACT_DUE: "rapport_contact_due_total", Counter, One, [],
        "Clients announced as due for contact.";

    DELIVERY_ATTEMPTS: "rapport_delivery_attempts_total", Counter, One, [ATTEMPT_OUTCOME],
        "Attempts to deliver to a webhook. A retried attempt failed and is made again later; own_fault is a problem of \
         this service, such as a lost encryption key.";
    DELIVERY_ATTEMPT_SECONDS: "rapport_delivery_attempt_seconds", Histogram(QUICK), Seconds, [ATTEMPT_OUTCOME],
        "Time that an attempt took, from looking up the name to the end of the response.";
    DELIVERY_SECONDS: "rapport_delivery_seconds", Histogram(PATIENT), Seconds, [],
        "Time from an event to its successful delivery, retries and time spent held included. Redeliveries don't count.";
    DELIVERIES_RECOVERED: "rapport_deliveries_recovered_total", Counter, One, [],
        "Deliveries that a node owned but had lost track of, and gave back.";
    DELIVERIES_OPEN: "rapport_deliveries_open", Gauge, One, [],
        "Deliveries that are not finished and not held, of all nodes. Counted up to 10000; more look like 10000.";
    DELIVERIES_OLDEST_AGE: "rapport_deliveries_oldest_age_seconds", Gauge, Seconds, [],
        "Age of the oldest of those deliveries; of more than 10000, the oldest of those counted. Retries take up to \
         days.";
    DELIVERIES_OVERDUE: "rapport_deliveries_overdue_seconds", Gauge, Seconds, [],
        "How long the most overdue open delivery has waited past the time of its next attempt.";
    DELIVERIES_HELD: "rapport_deliveries_held", Gauge, One, [],
        "Open deliveries of disabled webhooks. Counted up to 10000; more look like 10000.";
    WEBHOOKS_DISABLED: "rapport_webhooks_disabled", Gauge, One,
        [Label { name: "by", values: Only(&["hand", "failures"]) }],
        "Disabled webhooks: by hand, or automatically after too many failures.";

    MAILS_OPEN: "rapport_mails_open", Gauge, One, [],
        "Mails waiting to be sent, of all nodes. Counted up to 10000; more look like 10000.";
    MAILS_OLDEST_AGE: "rapport_mails_oldest_age_seconds", Gauge, Seconds, [],
        "Age of the oldest of those mails.";
    MAIL_ATTEMPTS: "rapport_mail_attempts_total", Counter, One,
        [Label { name: "outcome", values: Only(&["sent", "failed"]) }],
        "Attempts to hand a mail to the mail server.";

    STORE_FAILING: "rapport_store_failing", Gauge, One, [],
        "1 while the database fails or refuses changes, otherwise 0.";
    STORE_QUEUE_DEPTH: "rapport_store_queue_depth", Gauge, One, [],
        "Changes waiting for the database.";
    STORE_QUEUE_WAIT: "rapport_store_queue_wait_seconds", Histogram(QUICK), Seconds, [],
        "Time that a change waited before the database began to work on it.";
    STORE_REJECTED: "rapport_store_rejected_total", Counter, One, [],
        "Changes turned away because the queue was full or they waited longer than a second.";
    STORE_DATABASE_BYTES: "rapport_store_database_bytes", Gauge, Bytes, [],
        "Size of the database, without SQLite's write-ahead log.";
    STORE_LOG_BYTES: "rapport_store_log_bytes", Gauge, Bytes, [],
        "Bytes in SQLite's write-ahead log; always 0 on PostgreSQL.";
    STORE_BLOCKED_CHECKPOINTS: "rapport_store_blocked_checkpoints_total", Counter, One, [],
        "Checkpoints of a long write-ahead log that a reader's snapshot blocked; always 0 on PostgreSQL.";
    STORE_FAILED_CHECKPOINTS: "rapport_store_failed_checkpoints_total", Counter, One, [],
        "Checkpoints that failed; always 0 on PostgreSQL.";

    JOB_LAST_SUCCESS: "rapport_job_last_success_timestamp_seconds", Gauge, Timestamp, [JOB],
        "When a background job of this process last ended without an error; 0 if it never has.";
    JOB_FAILING: "rapport_job_failing", Gauge, One, [JOB],
        "1 if the last run of a background job failed, otherwise 0.";
    BACKUP_LAST_SUCCESS: "rapport_backup_last_success_timestamp_seconds", Gauge, Timestamp, [],
        "When the last scheduled backup succeeded; 0 if none is known.";
    BACKUP_BYTES: "rapport_backup_bytes", Gauge, Bytes, [],
        "Size of the last scheduled backup; 0 if none is known.";

    PROCESS_CPU: "process_cpu_seconds_total", FractionalCounter, Seconds, [],
        "Total user and system CPU time spent in seconds.";
    PROCESS_RESIDENT_MEMORY: "process_resident_memory_bytes", Gauge, Bytes, [],
        "Resident memory size in bytes.";
    PROCESS_VIRTUAL_MEMORY: "process_virtual_memory_bytes", Gauge, Bytes, [],
        "Virtual memory size in bytes.";
    PROCESS_OPEN_FDS: "process_open_fds", Gauge, One, [],
        "Number of open file descriptors.";
    PROCESS_MAX_FDS: "process_max_fds", Gauge, One, [],
        "Maximum number of open file descriptors.";
    PROCESS_START_TIME: "process_start_time_seconds", Gauge, Timestamp, [],
        "Start time of the process since unix epoch in seconds.";
}
