//! What a person does on a page, by the names of buttons and fields. An action that leads to another page waits for
//! that page: whatever a test does next, it does there.

use std::time::{Duration, Instant};

use fantoccini::Locator;
use fantoccini::actions::{InputSource as _, KeyAction, KeyActions, MouseActions, PointerAction};
use fantoccini::elements::{Element, ElementRef};
use fantoccini::error::CmdError;
use serde_json::json;

use crate::sight::{Look, PATIENCE, field_of, is_missed, is_passing};
use crate::{Browser, Hands};

/// How long keys may take to lead somewhere before they are pressed again.
const KEYS_LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What a click does.
struct Clicked {
    /// The document in which it happens.
    document: ElementRef,
    /// Whether it opens another page: on a link, or where it sends a form.
    leads_away: bool,
}

impl Browser {
    /// Clicks the first link, button or menu that says exactly this.
    pub async fn click(&self, text: &str) {
        self.click_on(Locator::XPath(&saying(text)), text).await;
    }

    /// Clicks what a selector finds.
    pub async fn click_css(&self, selector: &str) {
        self.click_on(Locator::Css(selector), selector).await;
    }

    /// Clicks a button whose form the browser does not send, because something in it is still missing.
    pub async fn click_in_vain(&self, text: &str) {
        self.click_once(Locator::XPath(&saying(text)), text).await;
    }

    /// Clicks a button that sends a form twice, as fast as possible.
    pub async fn click_twice(&self, text: &str) {
        let (locator, what) = (saying(text), format!("{text:?} to click twice"));
        let clicked = self
            .until(&what, async || {
                let Some(element) = self.shown(Locator::XPath(&locator)).await? else { return Ok(missing()) };
                let Some(clicked) = outlook(self, &element).await? else { return Ok(missing()) };
                match self.push_twice(element).await {
                    Err(error) if is_missed(&error) || !is_passing(&error) => Err(error),
                    Ok(()) | Err(_) => Ok(Look::Found(clicked)),
                }
            })
            .await;
        self.leave(&clicked.document, &format!("clicking {text:?} twice")).await;
    }

    async fn click_on(&self, locator: Locator<'_>, what: &str) {
        let clicked = self.click_once(locator, what).await;
        if clicked.leads_away {
            self.leave(&clicked.document, &format!("clicking {what:?}")).await;
        }
    }

    async fn click_once(&self, locator: Locator<'_>, what: &str) -> Clicked {
        self.until(&format!("{what:?} to click"), async || {
            let Some(element) = self.shown(locator).await? else { return Ok(missing()) };
            let element = self.aim(element).await?;
            let Some(clicked) = outlook(self, &element).await? else { return Ok(missing()) };
            match self.push(&element).await {
                Err(error) if is_missed(&error) || !is_passing(&error) => Err(error),
                // The page may be gone before the driver could confirm the click: a second click would be one too many.
                Ok(()) | Err(_) => Ok(Look::Found(clicked)),
            }
        })
        .await
    }

    /// Types into the field with this name, replacing what it held.
    pub async fn fill(&self, name: &str, text: &str) {
        self.fill_css(&field_of(name), text).await;
    }

    /// The same in the field that a selector finds, if several have the same name.
    pub async fn fill_css(&self, selector: &str, text: &str) {
        let write = async |field: Element| self.write(&field, text).await;
        self.in_field(selector, text, write).await;
    }

    /// Chooses a file.
    pub async fn attach(&self, name: &str, file: &str) {
        let put = async |field: Element| self.put(&field, file).await;
        self.in_field(&field_of(name), file, put).await;
    }

    /// Chooses an option by its value.
    pub async fn choose(&self, name: &str, value: &str) {
        self.choose_css(&field_of(name), value).await;
    }

    /// The same in the field that a selector finds, if several have the same name.
    pub async fn choose_css(&self, selector: &str, value: &str) {
        let pick = async |field: Element| self.pick(&field, value).await;
        self.in_field(selector, value, pick).await;
    }

    /// Does something with a field, and does it again if the field was replaced in the meantime.
    async fn in_field(
        &self,
        selector: &str,
        value: &str,
        act: impl AsyncFn(Element) -> Result<Look<()>, CmdError>,
    ) {
        self.until(&format!("the field {selector} to take {value:?}"), async || {
            let Some(field) = self.shown(Locator::Css(selector)).await? else { return Ok(missing()) };
            act(field).await
        })
        .await;
    }

    /// Presses keys wherever the focus is, one after the other; `\u{e007}` is Enter.
    pub async fn press(&self, keys: &str) {
        let pressed = keys.chars().fold(KeyActions::new("keyboard".to_owned()), |actions, value| {
            actions.then(KeyAction::Down { value }).then(KeyAction::Up { value })
        });
        self.perform(pressed, keys).await;
    }

    /// Presses a key while another one is held.
    pub async fn press_with(&self, held: char, key: char) {
        let pressed = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: held })
            .then(KeyAction::Down { value: key })
            .then(KeyAction::Up { value: key })
            .then(KeyAction::Up { value: held });
        self.perform(pressed, &key.to_string()).await;
    }

    async fn perform(&self, actions: KeyActions, keys: &str) {
        match self.client.perform_actions(actions).await {
            Err(error) if !is_passing(&error) => panic!("{keys:?}: {error}"),
            // Keys that lead to another page may work before the driver could confirm them.
            Ok(()) | Err(_) => {}
        }
    }

    /// Presses keys that lead to another page, such as Enter in a field, and waits for it.
    pub async fn press_and_leave(&self, keys: &str) {
        let document = self.document().await;
        self.press(keys).await;
        self.leave(&document, &format!("pressing {keys:?}")).await;
    }

    /// Goes to a page with the keys that lead there. A sequence of keys counts only if they follow each other quickly;
    /// on a busy machine they may not, and a person presses them again.
    pub async fn go_by_keys(&self, keys: &str, path: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.press(keys).await;
            let pressed = Instant::now();
            while pressed.elapsed() < KEYS_LIMIT {
                let url = self.client.current_url().await;
                if Instant::now() > deadline || url.is_ok_and(|url| url.path() == path) {
                    return self.arrive(path).await;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// Moves the mouse over what a selector finds, without a click.
    pub async fn hover(&self, selector: &str) {
        self.until(&format!("{selector} to hover over"), async || {
            let Some(element) = self.shown(Locator::Css(selector)).await? else { return Ok(missing()) };
            let over = PointerAction::MoveToElement { element, duration: None, x: 0.0, y: 0.0 };
            self.client.perform_actions(MouseActions::new("mouse".to_owned()).then(over)).await?;
            Ok(Look::Found(()))
        })
        .await;
    }

    /// Drags one element onto another, as a mouse does.
    pub async fn drag(&self, from: &str, to: &str) {
        // When headless, Chromium's driver creates no drag events from mouse moves, so they are created here.
        let script = "
            const [from, to] = [...arguments].map((selector) => document.querySelector(selector));
            const dataTransfer = new DataTransfer();
            const send = (target, kind) =>
                target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer }));
            send(from, 'dragstart'); send(to, 'dragover'); send(to, 'drop'); send(from, 'dragend');";
        self.expect_some(from).await;
        self.expect_some(to).await;
        match self.client.execute(script, vec![json!(from), json!(to)]).await {
            Err(error) if !is_passing(&error) => panic!("cannot drag {from}: {error}"),
            Ok(_) | Err(_) => {}
        }
    }
}

fn missing<T>() -> Look<T> {
    Look::NotYet("it isn't there".to_owned())
}

/// What a click on an element will do, or nothing if the element is gone. The driver is asked only once: there are
/// thousands of clicks.
async fn outlook(browser: &Browser, element: &Element) -> Result<Option<Clicked>, CmdError> {
    // The script moves a card without loading the page again.
    let stays = if browser.hands == Hands::NoScripts { "" } else { "or @data-move" };
    let form = format!("form[not(@method='dialog' {stays})]");
    let path = format!(
        "ancestor::html | self::a[@href and not(starts-with(@href, '#')) and not(@download)] | \
         (self::button[not(@type) or @type='submit'] | self::input[@type='submit']) \
         [@form = //{form}/@id or not(@form) and ancestor::{form}]"
    );
    // They are in the order of the document: first the document, then the element if it leads away.
    let found = element.find_all(Locator::XPath(&path)).await?;
    Ok(found.first().map(|document| Clicked { document: document.element_id(), leads_away: found.len() > 1 }))
}

/// The XPath of a link, a button or a menu that says exactly this.
fn saying(text: &str) -> String {
    format!(
        "//*[self::a or self::button or self::summary or self::label][normalize-space(.)={0} or @aria-label={0}]",
        quoted(text)
    )
}

/// Quotes a text for XPath.
fn quoted(text: &str) -> String {
    if text.contains('"') { format!("'{text}'") } else { format!("\"{text}\"") }
}
