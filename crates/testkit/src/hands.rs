//! How a person works: with the mouse, with the keyboard alone, or in a browser that runs no scripts. A journey is
//! written once and done in each of these ways.

use std::time::{Duration, Instant};

use fantoccini::Locator;
use fantoccini::actions::{InputSource as _, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use serde_json::{Value, json};

use crate::Browser;
use crate::chromium::Command;
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
/// Where the focus is, as the target sees it. One look says it all, because there are thousands of steps.
const FOCUS: &str = "
    const [target] = arguments; const here = document.activeElement; const starts = here === document.body;
    const follows = (one, other) => !!(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
    const group = (one) => one.type === 'radio' ? one.name : NaN;
    const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]');
    const isStop = (one) => one.tabIndex >= 0 && !one.disabled && one.type !== 'radio' && one.checkVisibility();
    const isBetween = (one) => (starts || follows(here, one)) && follows(one, target);
    const style = getComputedStyle(target);
    return {
        there: here === target,
        shown: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none',
        date: ['date', 'datetime-local'].includes(target.type),
        grouped: here.form === target.form && group(here) === group(target),
        at_start: starts && !!target.closest('#content') && !!document.querySelector('a.skip'),
        below: !starts && follows(target, here),
        stops: [...all].filter((one) => isBetween(one) && isStop(one)).length,
    }";

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
        if is_date {
            return field.send_keys(&keys).await.map(Look::Found);
        }
        self.type_into(field, &keys).await.map(Look::Found)
    }

    /// Types the first character and inserts the rest at once. The browser takes three events for a key, and draws after
    /// each of them.
    async fn type_into(&self, field: &Element, text: &str) -> Result<(), CmdError> {
        let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
        field.send_keys(first).await?;
        if rest.is_empty() {
            return Ok(());
        }
        self.client.issue_cmd(Command("Input.insertText", json!({ "text": rest }))).await?;
        let held = field.prop("value").await?.unwrap_or_default();
        // The focus had been taken away in between.
        if held == first { field.send_keys(rest).await } else { Ok(()) }
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
        let since = Instant::now();
        let (mut steps, mut has_skipped, mut goes_back) = (0, false, false);
        loop {
            let focus = self.ask(FOCUS, vec![json!(target)]).await?;
            let is = |what: &str| focus[what] == json!(true);
            if is("there") && is("date") && goes_back {
                self.enter_again(target).await?;
                goes_back = false;
            } else if is("there") && is("shown") {
                return Ok(());
            } else if is("there") {
                // The stylesheet is still on its way.
                assert!(
                    since.elapsed() < FOCUS_LIMIT,
                    "the focus does not show at {}",
                    target.html(false).await?
                );
                tokio::time::sleep(POLL_INTERVAL).await;
            } else {
                assert!(steps < STEPS, "the keyboard does not reach {}", target.html(false).await?);
                steps += 1;
                // Only one radio button of a group is a step; the arrow keys lead to the others.
                if is("grouped") {
                    self.press(DOWN).await;
                } else if is("at_start") && !has_skipped {
                    has_skipped = true;
                    self.skip_the_frame().await?;
                } else if is("below") {
                    // A person who sees that the target is further up goes back.
                    goes_back = true;
                    self.press_with(SHIFT, TAB).await;
                } else {
                    // As often as is certainly needed, without a look at the page each time.
                    let stops = focus["stops"].as_u64().and_then(|stops| usize::try_from(stops).ok());
                    let certain = stops.unwrap_or(0).saturating_sub(1).max(1);
                    self.press(&TAB.to_string().repeat(certain)).await;
                }
            }
        }
    }

    /// A date field that was entered at its end is entered again at its beginning, where it is written from.
    async fn enter_again(&self, target: &Element) -> Result<(), CmdError> {
        let is_there = "return document.activeElement === arguments[0]";
        while self.ask(is_there, vec![json!(target)]).await? == json!(true) {
            self.press_with(SHIFT, TAB).await;
        }
        self.press(&TAB.to_string()).await;
        Ok(())
    }

    /// The first step into a page is the link that skips its frame.
    async fn skip_the_frame(&self) -> Result<(), CmdError> {
        self.press(&TAB.to_string()).await;
        if self.ask("return document.activeElement.matches('a.skip')", Vec::new()).await? == json!(true) {
            self.press(ENTER).await;
        }
        Ok(())
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
