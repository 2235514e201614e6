//! A slow connection between the browser and the service: pages arrive piece by piece.

use fantoccini::wd::WebDriverCompatibleCommand;
use hyper::Method;
use serde_json::json;
use url::{ParseError, Url};

use crate::Browser;

const LATENCY_MS: u32 = 20;

/// Slows the browser's connections down to this many bytes per second, or ends that.
#[derive(Debug)]
struct Conditions(Option<u32>);

impl WebDriverCompatibleCommand for Conditions {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        base_url.join(&format!("session/{}/chromium/network_conditions", session_id.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        let Some(throughput) = self.0 else { return (Method::DELETE, None) };
        let conditions = json!({
            "offline": false, "latency": LATENCY_MS,
            "download_throughput": throughput, "upload_throughput": throughput,
        });
        (Method::POST, Some(json!({ "network_conditions": conditions }).to_string()))
    }
}

impl Browser {
    /// From now on, this many bytes arrive per second.
    pub async fn slow_down(&self, bytes_per_second: u32) {
        self.client.issue_cmd(Conditions(Some(bytes_per_second))).await.expect("a slow network");
    }

    /// The network is fast again, also for the next test.
    pub async fn speed_up(&self) {
        self.client.issue_cmd(Conditions(None)).await.expect("a fast network");
    }
}
