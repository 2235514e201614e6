//! The size of a browser's window and the colors of its pages, which a test may change while a page is open.

use serde_json::{Value, json};

use crate::Browser;

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
        self.command("Emulation.setDeviceMetricsOverride", metrics).await;
        self.expect_script("return [innerWidth, innerHeight]", &json!([width, height])).await;
    }

    /// Shows pages in dark colors or in light ones.
    pub async fn darken(&self, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.emulate_media(json!({ "features": [feature] })).await;
        let is_shown = format!("return matchMedia('(prefers-color-scheme: {scheme})').matches");
        self.expect_script(&is_shown, &json!(true)).await;
    }

    /// Shows pages as they are printed, or as on a screen again.
    pub async fn print(&self, is_printed: bool) {
        self.emulate_media(json!({ "media": if is_printed { "print" } else { "screen" } })).await;
    }

    async fn emulate_media(&self, media: Value) {
        self.command("Emulation.setEmulatedMedia", media).await;
    }

    /// Gives the window back the size and the colors that it was opened with.
    pub async fn restore(&self) {
        self.command("Emulation.clearDeviceMetricsOverride", json!({})).await;
        self.emulate_media(json!({})).await;
    }
}
