//! How a person works: with the mouse, with the keyboard alone, or in a browser that runs no scripts. A journey is
//! written once and done in each of these ways.

use std::time::{Duration, Instant};

use fantoccini::Locator;
use fantoccini::actions::{InputSource as _, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use serde_json::{Value, json};

use crate::Browser;
use crate::sight::Look;

const TAB: char = '\u{e004}';
const SHIFT: char = '\u{e008}';
const ENTER: &str = "\u{e007}";
const DOWN: &str = "\u{e015}";
const UP: &str = "\u{e013}";
/// Control and A, then Control is released.
const SELECT_ALL: &str = "\u{e009}a\u{e000}";
/// How long the focus may take to show.
const FOCUS_LIMIT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// No page needs more steps than this from anywhere to anywhere.
const STEPS: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hands {
    #[default]
    Mouse,
    /// Tab to it, and press a key. What cannot be reached this way, or does not show its focus, counts as missing.
    Keyboard,
    /// The mouse, and no script runs in any page.
    NoScripts,
}

/// Runs a journey once with each [`Hands`].
#[macro_export]
macro_rules! with_all_hands {
    ($($journey:ident),+ $(,)?) => {$(
        mod $journey {
            #[tokio::test]
            async fn by_mouse() {
                super::$journey($crate::Hands::Mouse).await;
            }

            #[tokio::test]
            async fn by_keyboard() {
                super::$journey($crate::Hands::Keyboard).await;
            }

            #[tokio::test]
            async fn without_scripts() {
                super::$journey($crate::Hands::NoScripts).await;
            }
        }
    )+};
}

impl Browser {
    /// Returns the element that a click is meant for. With the keyboard, also brings the focus there.
    pub(crate) async fn aim(&self, element: Element) -> Result<Element, CmdError> {
        if self.hands != Hands::Keyboard {
            return Ok(element);
        }
        let control = self.control_of(element).await?;
        self.reach(&control).await?;
        Ok(control)
    }

    /// Clicks an element that was aimed at, or does the same with the keyboard.
    pub(crate) async fn push(&self, element: &Element) -> Result<(), CmdError> {
        if self.hands != Hands::Keyboard {
            return element.click().await;
        }
        let ticked = matches!(element.attr("type").await?.as_deref(), Some("checkbox" | "radio"));
        self.press(if ticked { " " } else { ENTER }).await;
        Ok(())
    }

    /// Does it twice, as fast as the browser allows.
    pub(crate) async fn push_twice(&self, element: Element) -> Result<(), CmdError> {
        if self.hands == Hands::Keyboard {
            self.reach(&element).await?;
            self.press(&ENTER.repeat(2)).await;
            return Ok(());
        }
        let to = PointerAction::MoveToElement { element, duration: None, x: 0.0, y: 0.0 };
        let button = MOUSE_BUTTON_LEFT;
        let twice = (0..2).fold(MouseActions::new("mouse".to_owned()).then(to), |actions, _| {
            actions.then(PointerAction::Down { button }).then(PointerAction::Up { button })
        });
        self.client.perform_actions(twice).await
    }

    /// Types into a field, replacing what it held. A date is written as `2027-01-31`, a time as
    /// `2027-01-31T09:30:00`.
    pub(crate) async fn write(&self, field: &Element, text: &str) -> Result<Look<()>, CmdError> {
        let kind = field.attr("type").await?;
        let is_date = is_date(kind.as_deref());
        let keys = if is_date { american(text) } else { text.to_owned() };
        match self.hands {
            Hands::Mouse | Hands::NoScripts => field.clear().await?,
            Hands::Keyboard => self.reach(field).await?,
        }
        if self.hands == Hands::Keyboard && !is_date {
            field.send_keys(SELECT_ALL).await?;
        }
        field.send_keys(&keys).await.map(Look::Found)
    }

    /// Chooses an option by its value.
    pub(crate) async fn pick(&self, field: &Element, value: &str) -> Result<Look<()>, CmdError> {
        if self.hands != Hands::Keyboard {
            return field.select_by_value(value).await.map(Look::Found);
        }
        self.reach(field).await?;
        let script = "const [field, value] = arguments;
            return [...field.options].findIndex((option) => option.value === value) - field.selectedIndex";
        let steps = self.ask(script, vec![json!(field), json!(value)]).await?.as_i64().unwrap_or(0);
        let key = if steps < 0 { UP } else { DOWN };
        for _ in 0..steps.unsigned_abs() {
            self.press(key).await;
        }
        let chosen = self.ask("return arguments[0].value", vec![json!(field)]).await?;
        if chosen == json!(value) {
            Ok(Look::Found(()))
        } else {
            Ok(Look::NotYet(format!("{chosen} is chosen")))
        }
    }

    /// Chooses a file. The keyboard must reach the field; the system's file dialog is not ours.
    pub(crate) async fn put(&self, field: &Element, file: &str) -> Result<Look<()>, CmdError> {
        if self.hands == Hands::Keyboard {
            self.reach(field).await?;
        }
        field.send_keys(file).await.map(Look::Found)
    }

    /// Steps through the page until an element has the focus, and checks that the focus shows.
    async fn reach(&self, target: &Element) -> Result<(), CmdError> {
        let shows = "const [target] = arguments; const style = getComputedStyle(target);
            if (document.activeElement !== target) return null;
            return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none'";
        let since = Instant::now();
        loop {
            self.step_to(target).await?;
            match self.ask(shows, vec![json!(target)]).await? {
                Value::Bool(true) => return Ok(()),
                // A live update took the focus away, or the stylesheet is still on its way.
                _ if since.elapsed() < FOCUS_LIMIT => tokio::time::sleep(POLL_INTERVAL).await,
                _ => panic!("the focus does not show at {}", target.html(false).await?),
            }
        }
    }

    async fn step_to(&self, target: &Element) -> Result<(), CmdError> {
        // Only one radio button of a group is a step; the arrow keys lead to the others.
        let near = "const [target] = arguments; const here = document.activeElement;
            const grouped = (one) => one.type === 'radio' ? one.name : NaN;
            return here === target || here.form === target.form && grouped(here) === grouped(target)";
        self.skip_the_frame(target).await?;
        // A person who sees that the target is further up goes back.
        let is_above = "const [target] = arguments; const here = document.activeElement;
            return here !== document.body && !!(target.compareDocumentPosition(here) & Node.DOCUMENT_POSITION_FOLLOWING)";
        let is_above = self.ask(is_above, vec![json!(target)]).await? == json!(true);
        if is_above {
            let back = async |browser: &Self| browser.press_with(SHIFT, TAB).await;
            self.step(back, near, target).await?;
            if is_date(target.attr("type").await?.as_deref()) {
                // The field is entered at its end, but written from its beginning.
                self.step(back, "return document.activeElement !== arguments[0]", target).await?;
                self.press(&TAB.to_string()).await;
            }
        } else {
            self.hurry_to(target).await?;
            self.step(async |browser| browser.press(&TAB.to_string()).await, near, target).await?;
        }
        self.step(
            async |browser| browser.press(DOWN).await,
            "return document.activeElement === arguments[0]",
            target,
        )
        .await
    }

    /// Presses Tab as often as is certainly needed, without a look at the page each time.
    async fn hurry_to(&self, target: &Element) -> Result<(), CmdError> {
        let stops_between = "const [target] = arguments; const here = document.activeElement;
            const stops = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]');
            const follows = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
            const isStop = (one) => one.tabIndex >= 0 && !one.disabled && one.type !== 'radio' && one.checkVisibility();
            return [...stops].filter((one) => isStop(one) && (here === document.body || follows(here, one))
                && follows(one, target)).length";
        let stops = self.ask(stops_between, vec![json!(target)]).await?.as_u64().unwrap_or(0);
        let certain = usize::try_from(stops.saturating_sub(1)).unwrap_or(0);
        if certain > 0 {
            self.press(&TAB.to_string().repeat(certain)).await;
        }
        Ok(())
    }

    /// The first step into a page is the link that skips its frame.
    async fn skip_the_frame(&self, target: &Element) -> Result<(), CmdError> {
        let far = "return document.activeElement === document.body && !!arguments[0].closest('#content')
            && !!document.querySelector('a.skip')";
        if self.ask(far, vec![json!(target)]).await? == json!(true) {
            self.press(&TAB.to_string()).await;
            if self.ask("return document.activeElement.matches('a.skip')", Vec::new()).await? == json!(true) {
                self.press(ENTER).await;
            }
        }
        Ok(())
    }

    async fn step(
        &self,
        press: impl AsyncFn(&Self),
        arrived: &str,
        target: &Element,
    ) -> Result<(), CmdError> {
        for _ in 0..STEPS {
            if self.ask(arrived, vec![json!(target)]).await? == json!(true) {
                return Ok(());
            }
            press(self).await;
        }
        panic!("the keyboard does not reach {}", target.html(false).await?)
    }

    /// The control that a label is for, or the element itself.
    async fn control_of(&self, element: Element) -> Result<Element, CmdError> {
        if element.tag_name().await? != "label" {
            return Ok(element);
        }
        match element.attr("for").await? {
            Some(id) => self.client.find(Locator::Id(&id)).await,
            None => element.find(Locator::Css("input, select, textarea")).await,
        }
    }

    async fn ask(&self, script: &str, arguments: Vec<Value>) -> Result<Value, CmdError> {
        self.client.execute(script, arguments).await
    }
}

fn is_date(kind: Option<&str>) -> bool {
    matches!(kind, Some("date" | "datetime-local"))
}

/// The keys for a date field in an American browser, which is what [`Browser`] opens; with a time if there is one.
fn american(text: &str) -> String {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let parts: Vec<&str> = date.split('-').collect();
    let date = match parts[..] {
        [year, month, day] => format!("{month}{day}{year}"),
        _ => panic!("a date is written as 2027-01-31, not {date:?}"),
    };
    // A year may have more digits, so the hour is one step further.
    time.map_or_else(|| date.clone(), |time| format!("{date}{TAB}{}", on_a_dial(time)))
}

fn on_a_dial(time: &str) -> String {
    let (hour, rest) = time.split_once(':').expect("a time is written as 09:30:00");
    let hour: u32 = hour.parse().expect("an hour");
    let half = if hour < 12 { "AM" } else { "PM" };
    format!("{:02}{}{half}", (hour + 11) % 12 + 1, rest.replace(':', ""))
}
