//! The metrics, as Prometheus sees them: every one in the table, in the documentation, and in rules and a dashboard
//! that Prometheus's own tool accepts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rapport_app::metric::{Kind, Label, Metric, TABLE, Values};
use rapport_domain::caps;
use serde_json::{Value, json};

use crate::program::{Place, Service, wait_until};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text_of(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs promtool, which must be content and find nothing to remark.
fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    let spawned =
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.expect("promtool, which ./scripts/test installs");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    if arguments == ["check", "metrics"] {
        assert_eq!(said, "", "promtool has remarks on:\n{input}");
    }
}

fn scrape(service: &Service) -> String {
    let (status, text) = service.get("/metrics");
    assert_eq!(status, 200);
    text
}

/// The value of a series, written as in the text.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

/// What the text says about each family: its kind and its help.
fn families(text: &str) -> BTreeMap<&str, (&str, &str)> {
    let about = |what: &'static str| {
        let lines = text.lines().filter_map(move |line| line.strip_prefix(what));
        lines.map(|line| line.split_once(' ').unwrap())
    };
    let help: BTreeMap<&str, &str> = about("# HELP ").collect();
    about("# TYPE ").map(|(name, kind)| (name, (kind, help.get(name).copied().unwrap_or("")))).collect()
}

#[test]
fn every_metric_is_served_from_the_start_and_no_other_ever() {
    let expected: BTreeMap<&str, (&str, &str)> =
        TABLE.iter().map(|metric| (metric.name, (metric.kind.as_str(), metric.help))).collect();
    Place::each(|place| {
        let service = place.serve();
        let text = scrape(&service);
        assert_eq!(families(&text), expected);
        promtool(&["check", "metrics"], &text);

        service.get("/nowhere");
        service.get("/api/accounts/");
        service.get("/health/live");
        let text = scrape(&service);
        assert_eq!(families(&text), expected);
        promtool(&["check", "metrics"], &text);
        for series in [
            r#"rapport_http_requests_total{path="/api/accounts/",method="GET",status="401"}"#,
            r#"rapport_http_requests_total{path="unmatched",method="GET",status="404"}"#,
            r#"rapport_http_request_seconds_bucket{path="/health/live",method="GET",class="2xx",le="30"}"#,
            r#"rapport_http_requests_total{path="/metrics",method="GET",status="200"}"#,
        ] {
            assert_eq!(value(&text, series), Some(1.0), "{series} in:\n{text}");
        }
        for series in ["process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"] {
            assert!(value(&text, series).unwrap() > 0.0, "{series} in:\n{text}");
        }
    });
}

fn send(service: &Service, method: &str, path: &str, token: &str, body: &Value) -> Value {
    let headers = [("Authorization", &*format!("Bearer {token}")), ("Content-Type", "application/json")];
    let (status, answer) = service.request(method, path, &headers, &body.to_string());
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    serde_json::from_str(&answer).unwrap_or(Value::Null)
}

#[test]
fn what_waits_is_measured_and_so_is_every_job() {
    Place::each(|place| {
        let created = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
        let created = place.json(&created);
        let token = created["api_token"].as_str().unwrap_or_else(|| panic!("{created}"));
        let mut service = place.serve();
        let webhook = json!({ "url": "https://example.com/hook", "events": ["account.created"] });
        let webhook = send(&service, "POST", "/api/webhooks/", token, &webhook);
        let disable = format!("/api/webhooks/{}/disable/", webhook["id"].as_str().unwrap());
        send(&service, "POST", &disable, token, &json!({}));
        for id in ["crm-1", "crm-2"] {
            let account = json!({ "project": "acme", "imported_id": id });
            send(&service, "POST", "/api/accounts/upsert-by-imported-id/", token, &account);
        }
        let text = scrape(&service);
        assert!(value(&text, "rapport_store_queue_wait_seconds_count").unwrap() >= 3.0, "{text}");
        // The next start counts at once.
        service.signal("TERM");
        service.wait();

        let service = place.serve();
        wait_until("the monitoring job", || value(&scrape(&service), "rapport_deliveries_held") == Some(2.0));
        let text = scrape(&service);
        for (series, expected) in [
            (r#"rapport_webhooks_disabled{by="hand"}"#, 1.0),
            (r#"rapport_webhooks_disabled{by="failures"}"#, 0.0),
            ("rapport_deliveries_open", 0.0),
            ("rapport_deliveries_overdue_seconds", 0.0),
            ("rapport_mails_open", 0.0),
            ("rapport_store_failing", 0.0),
            (r#"rapport_job_failing{name="monitoring"}"#, 0.0),
        ] {
            assert_eq!(value(&text, series), Some(expected), "{series} in:\n{text}");
        }
        assert!(value(&text, "rapport_store_database_bytes").unwrap() > 100_000.0, "{text}");
        let succeeded =
            value(&text, r#"rapport_job_last_success_timestamp_seconds{name="monitoring"}"#).unwrap();
        let started = value(&text, "process_start_time_seconds").unwrap();
        // The two clocks are read with different precision.
        assert!((succeeded - started).abs() < 600.0, "{succeeded} and {started}");
    });
}

/// The names of metrics in an expression, without what histograms add.
fn names_in(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("rapport_") || word.starts_with("process_"));
    let family = |word: &str| {
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|part| word.strip_suffix(part));
        of_histogram.unwrap_or(word).to_owned()
    };
    ours.map(family).collect()
}

fn assert_known(names: &BTreeSet<String>, place: &str) {
    assert!(!names.is_empty(), "{place} names metrics");
    for name in names {
        assert!(
            TABLE.iter().any(|metric| metric.name == name),
            "{place} names {name}, which is not in the table"
        );
    }
}

#[test]
fn the_alert_rules_pass_their_tests_and_each_is_tested() {
    let rules = file("observability/alerts.yaml");
    promtool(&["check", "rules", rules.to_str().unwrap()], "");
    promtool(&["test", "rules", file("observability/alerts_test.yaml").to_str().unwrap()], "");
    let (rules, tests) = (text_of("observability/alerts.yaml"), text_of("observability/alerts_test.yaml"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 15, "{alerts:?}");
    for alert in alerts {
        let fires = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels:");
        let rests = format!("alertname: {alert}, exp_alerts: []");
        assert!(tests.contains(&fires) && tests.contains(&rests), "{alert} is tested");
    }
    let without_comments: Vec<&str> = rules.lines().filter(|line| !line.trim().starts_with('#')).collect();
    assert_known(&names_in(&without_comments.join("\n")), "alerts.yaml");
}

#[test]
fn the_dashboard_shows_known_metrics_with_valid_expressions() {
    let dashboard: Value = serde_json::from_str(&text_of("observability/grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    let names = names_in(&expressions.join("\n"));
    assert_known(&names, "grafana-dashboard.json");
    let missing: Vec<&str> =
        TABLE.iter().map(|metric| metric.name).filter(|name| !names.contains(*name)).collect();
    assert!(missing.is_empty(), "not on the dashboard: {missing:?}");

    let rule = |(n, expression): (usize, &&str)| {
        let filled =
            expression.replace("$__rate_interval", "5m").replace("$job", "x").replace("$instance", "x");
        json!({ "record": format!("panel:{n}"), "expr": filled })
    };
    let rules: Vec<Value> = expressions.iter().enumerate().map(rule).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("panels.yaml");
    // JSON is YAML.
    fs::write(&path, json!({ "groups": [{ "name": "panels", "rules": rules }] }).to_string()).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()], "");
}

/// The lines of the documentation's table.
fn documented() -> String {
    let quoted =
        |values: &[&str]| values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    let label = |label: &Label| match label.values {
        Values::Only(values) => format!("`{}`: {}", label.name, quoted(values)),
        Values::Among { what, .. } => format!("`{}`: {what}", label.name),
    };
    let mut lines = "| Metric | Kind | Unit | Labels | Meaning |\n|---|---|---|---|---|\n".to_owned();
    for Metric { name, kind, unit, labels, help } in TABLE {
        let labels = labels.iter().map(label).collect::<Vec<_>>().join("; ");
        writeln!(lines, "| `{name}` | {} | {} | {labels} | {help} |", kind.as_str(), unit.as_str()).unwrap();
    }
    lines
}

#[test]
fn the_documentation_lists_every_metric() {
    let (expected, page) = (documented(), text_of("docs/metrics.md"));
    assert!(page.contains(&expected), "the table in docs/metrics.md must be:\n{expected}");
}

#[test]
fn a_capped_count_says_where_it_ends() {
    let cap = caps::IN_A_LIST.to_string();
    for name in ["rapport_deliveries_open", "rapport_deliveries_held", "rapport_mails_open"] {
        let metric = TABLE.iter().find(|metric| metric.name == name).unwrap();
        assert!(
            metric.help.contains(&format!("up to {cap}")) && metric.kind == Kind::Gauge,
            "{}",
            metric.help
        );
    }
}
