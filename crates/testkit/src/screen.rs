//! The size of a browser's window, which a test may change while a page is open.

use serde_json::json;

use crate::Browser;
use crate::chromium::Command;

/// A window of this size, in pixels of the screen, and the zoom of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    pub width: u32,
    pub height: u32,
    pub zoom_percent: u32,
}

impl Screen {
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height, zoom_percent: 100 }
    }

    /// The same window with its pages zoomed. A page then has fewer pixels, and each of them is larger.
    #[must_use]
    pub const fn zoomed(self, zoom_percent: u32) -> Self {
        Self { zoom_percent, ..self }
    }

    /// A length in the pixels that the page counts in.
    const fn in_page(self, pixels: u32) -> u32 {
        pixels * 100 / self.zoom_percent
    }
}

impl Browser {
    /// Gives the window another size, and waits until the page has it.
    pub async fn resize(&self, screen: Screen) {
        let (width, height) = (screen.in_page(screen.width), screen.in_page(screen.height));
        let scale = f64::from(screen.zoom_percent) / 100.0;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false });
        let command = Command("Emulation.setDeviceMetricsOverride", metrics);
        self.client.issue_cmd(command).await.unwrap_or_else(|error| panic!("{screen:?}: {error}"));
        self.expect_script("return [innerWidth, innerHeight]", &json!([width, height])).await;
    }

    /// Shows pages as they are printed, or as on a screen again.
    pub async fn print(&self, is_printed: bool) {
        let media = json!({ "media": if is_printed { "print" } else { "screen" } });
        let command = Command("Emulation.setEmulatedMedia", media);
        self.client.issue_cmd(command).await.unwrap_or_else(|error| panic!("{is_printed}: {error}"));
    }

    /// Gives the window back the size that it was opened with, for the next test.
    pub async fn restore_size(&self) {
        let command = Command("Emulation.clearDeviceMetricsOverride", json!({}));
        self.client.issue_cmd(command).await.unwrap_or_else(|error| panic!("the size stays: {error}"));
    }
}
