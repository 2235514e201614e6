//! A slow connection between the browser and the service: pages arrive piece by piece.

use serde_json::json;

use crate::Browser;

const LATENCY_MS: u32 = 20;
const UNLIMITED: i64 = -1;

impl Browser {
    /// From now on, this many bytes arrive per second.
    pub async fn slow_down(&self, bytes_per_second: u32) {
        self.command("Network.enable", json!({})).await;
        self.set_conditions(LATENCY_MS, i64::from(bytes_per_second)).await;
    }

    /// The network is fast again.
    pub async fn speed_up(&self) {
        self.set_conditions(0, UNLIMITED).await;
    }

    async fn set_conditions(&self, latency_ms: u32, bytes_per_second: i64) {
        let conditions = json!({
            "offline": false, "latency": latency_ms,
            "downloadThroughput": bytes_per_second, "uploadThroughput": bytes_per_second,
        });
        self.command("Network.emulateNetworkConditions", conditions).await;
    }
}
