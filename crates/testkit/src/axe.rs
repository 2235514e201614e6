//! Accessibility problems of a page, found by axe-core.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{Browser, Screen};

const HINT: &str = "axe-core is missing: run ./scripts/test, which fetches it";
const LOOK: &str = include_str!("axe.js");

/// A desktop and a phone.
const SCREENS: [Screen; 2] = [Screen::new(1280, 900), Screen::new(390, 844)];

impl Browser {
    /// The problems that axe-core finds on the page as it is, one line each.
    pub async fn axe(&self) -> Vec<String> {
        self.run_axe(json!({})).await
    }

    /// The same, and in every menu and dialog that opens on the page. They are closed again afterwards.
    pub async fn axe_everywhere(&self) -> Vec<String> {
        self.run_axe(json!({ "opens": true })).await
    }

    /// The same on a desktop and on a phone, in the light and in the dark.
    pub async fn axe_on_every_screen(&self) -> Vec<String> {
        let mut found = Vec::new();
        for screen in SCREENS {
            self.resize(screen).await;
            for is_dark in [false, true] {
                self.darken(is_dark).await;
                // The dark page is the same page in other colors.
                let lines = self.run_axe(json!({ "opens": true, "onlyColors": is_dark })).await;
                let light = if is_dark { "dark" } else { "light" };
                found.extend(lines.into_iter().map(|line| format!("{}, {light}: {line}", screen.width)));
            }
        }
        self.restore().await;
        found
    }

    async fn run_axe(&self, how: Value) -> Vec<String> {
        if self.run("return typeof axe", Vec::new()).await == "undefined" {
            let axe = std::fs::read_to_string(file()).unwrap_or_else(|error| panic!("{HINT}: {error}"));
            self.run(&axe, Vec::new()).await;
        }
        let found = self.run_async(LOOK, vec![how]).await;
        found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/axe/node_modules/axe-core/axe.min.js")
}
