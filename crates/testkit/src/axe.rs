//! Accessibility problems of a page, found by axe-core.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Browser;

const HINT: &str = "axe-core is missing: run ./scripts/test, which fetches it";
const LOOK: &str = include_str!("axe.js");

impl Browser {
    /// The problems that axe-core finds on the page as it is, one line each.
    pub async fn axe(&self) -> Vec<String> {
        self.run_axe(false).await
    }

    /// The same, and in every menu and dialog that opens on the page. They are closed again afterwards.
    pub async fn axe_everywhere(&self) -> Vec<String> {
        self.run_axe(true).await
    }

    async fn run_axe(&self, opens: bool) -> Vec<String> {
        let axe = std::fs::read_to_string(file()).unwrap_or_else(|error| panic!("{HINT}: {error}"));
        self.run(&axe, Vec::new()).await;
        let found = self.client.execute_async(LOOK, vec![json!(opens)]).await.expect("axe runs");
        found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/axe/node_modules/axe-core/axe.min.js")
}
