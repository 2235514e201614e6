//! Elements of a page. Each script that is about one finds it anew, because the page may have been replaced since.

use serde_json::{Value, json};

use crate::Browser;
use crate::chromium::Failure;

/// What every such script begins with. `target` is the first element that shows.
const FIND: &str = include_str!("elements.js");

/// Which element.
#[derive(Debug, Clone)]
pub struct Target {
    kind: &'static str,
    what: String,
}

impl Target {
    pub fn css(selector: &str) -> Self {
        Self { kind: "css", what: selector.to_owned() }
    }

    /// A link, a button, a menu or a label that says exactly this.
    pub fn saying(text: &str) -> Self {
        Self { kind: "saying", what: text.to_owned() }
    }

    /// The field with this name.
    pub fn field(name: &str) -> Self {
        Self::css(&format!("[name=\"{name}\"]:not([type=hidden])"))
    }

    /// The control that a label is for, instead of the label.
    pub fn control(self) -> Self {
        Self { kind: if self.kind == "css" { "control" } else { "control saying" }, ..self }
    }

    fn arguments(&self, given: &Value) -> [Value; 2] {
        [json!([self.kind, self.what]), given.clone()]
    }
}

impl Browser {
    /// What a script returns about the first element that shows; nothing if none does. In the script it is called
    /// `target`, and what is handed over is called `given`.
    pub(crate) async fn about(
        &self,
        target: &Target,
        script: &str,
        given: &Value,
    ) -> Result<Option<Value>, Failure> {
        let script = format!("{FIND}\nif (!target) return null;\n{script}");
        let answer = self.window().evaluate(&script, &target.arguments(given)).await?;
        Ok(Some(answer).filter(|answer| !answer.is_null()))
    }

    /// The browser's handle of the first element that shows.
    pub(crate) async fn handle(&self, target: &Target) -> Result<Option<String>, Failure> {
        let script = format!("{FIND}\nreturn target");
        self.window().handle(&script, &target.arguments(&Value::Null)).await
    }
}
