//! How a person works: with the mouse, with the keyboard alone, or in a browser that runs no scripts. A journey is
//! written once and done in each of these ways.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Browser;
use crate::acts::missing;
use crate::chromium::{Answer, Failure};
use crate::elements::Target;
use crate::keys::{BACKSPACE, DOWN, ENTER, SHIFT, TAB, UP};
use crate::sight::Look;

/// How long the focus may take to show.
const FOCUS_LIMIT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// No page needs more steps than this from anywhere to anywhere.
const STEPS: usize = 400;
/// Where the focus is, as the target sees it. One look says it all, because there are thousands of steps.
const FOCUS: &str = "
    const here = document.activeElement; const starts = here === document.body;
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

/// Where a click goes.
pub enum Aim {
    Mouse(Point),
    /// The focus is there. A box is ticked with another key than a button is pressed with.
    Focus {
        is_box: bool,
    },
}

/// A place in the window, in its pixels.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    x: f64,
    y: f64,
}

/// Where the middle of what shows of the target is. It is scrolled into view if it isn't there, or if something else is in
/// front of it.
const MIDDLE: &str = "
    const middle = () => {
        const box = [...target.getClientRects()].find((box) => box.width > 0 && box.height > 0);
        const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
        const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
        return left < right && top < bottom ? { x: (left + right) / 2, y: (top + bottom) / 2 } : null;
    };
    const front = (at) => at && document.elementFromPoint(at.x, at.y);
    const isFree = (at) => target.contains(front(at));
    if (!isFree(middle())) target.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const at = middle();
    return isFree(at) ? at : { covered: front(at)?.outerHTML.slice(0, 120) ?? 'it is out of sight' };";

/// Makes a field ready for text that replaces what it holds; returns what kind of field it is.
const BEGIN: &str = "
    target.focus();
    if (document.activeElement !== target) return { kind: null };
    if (target.type.startsWith('date')) target.value = ''; else target.select();
    return { kind: target.type };";

const PICK: &str = "
    const option = [...target.options].find((option) => option.value === given);
    if (!option || option.disabled || target.disabled) return { chosen: target.value };
    target.focus();
    if (!option.selected) {
        option.selected = true;
        for (const event of ['input', 'change']) target.dispatchEvent(new Event(event, { bubbles: true }));
    }
    return { chosen: option.value };";

impl Browser {
    /// Finds out where a click on an element goes. With the keyboard, also brings the focus there.
    pub(crate) async fn aim(&self, target: &Target) -> Result<Look<Aim>, Failure> {
        if self.hands != Hands::Keyboard {
            let point = self.point_at(target).await?;
            return Ok(point.map(Aim::Mouse));
        }
        let control = target.clone().control();
        if let Look::NotYet(why) = self.reach(&control).await? {
            return Ok(Look::NotYet(why));
        }
        let is_box =
            self.about(&control, "return ['checkbox', 'radio'].includes(target.type)", &Value::Null).await?;
        Ok(is_box.map_or_else(missing, |is_box| Look::Found(Aim::Focus { is_box: is_box == json!(true) })))
    }

    /// Clicks where it was aimed at, or does the same with the keyboard; several times as fast as the browser allows.
    pub(crate) async fn push(&self, aim: &Aim, times: usize) -> Result<(), Failure> {
        match aim {
            Aim::Mouse(point) => {
                let mut answers = vec![self.move_mouse(*point)];
                for count in 1..=times {
                    answers.push(self.mouse("mousePressed", *point, count));
                    answers.push(self.mouse("mouseReleased", *point, count));
                }
                for answer in answers {
                    done_or_gone(answer.wait().await)?;
                }
            }
            Aim::Focus { is_box: true } => self.press(&" ".repeat(times)).await,
            Aim::Focus { is_box: false } => self.press(&ENTER.to_string().repeat(times)).await,
        }
        Ok(())
    }

    pub(crate) async fn point_at(&self, target: &Target) -> Result<Look<Point>, Failure> {
        let Some(middle) = self.about(target, MIDDLE, &Value::Null).await? else { return Ok(missing()) };
        let point = middle["x"].as_f64().zip(middle["y"].as_f64());
        let covered = || Look::NotYet(format!("in front of it: {}", middle["covered"]));
        Ok(point.map_or_else(covered, |(x, y)| Look::Found(Point { x, y })))
    }

    pub(crate) fn move_mouse(&self, to: Point) -> Answer {
        let moved = json!({ "type": "mouseMoved", "x": to.x, "y": to.y });
        self.window().send("Input.dispatchMouseEvent", moved)
    }

    fn mouse(&self, event: &str, at: Point, count: usize) -> Answer {
        let click = json!({ "type": event, "x": at.x, "y": at.y, "button": "left", "clickCount": count });
        self.window().send("Input.dispatchMouseEvent", click)
    }

    /// Types text into a field, replacing what it held. A date is written as `2027-01-31`, a time as
    /// `2027-01-31T09:30:00`.
    pub(crate) async fn write(&self, field: &Target, text: &str) -> Result<Look<()>, Failure> {
        if self.hands == Hands::Keyboard
            && let Look::NotYet(why) = self.reach(field).await?
        {
            return Ok(Look::NotYet(why));
        }
        let Some(begun) = self.about(field, BEGIN, &Value::Null).await? else { return Ok(missing()) };
        match begun["kind"].as_str() {
            None => return Ok(Look::NotYet("it doesn't take the focus".to_owned())),
            kind if is_date(kind) => {
                self.press(&american(text)).await;
                return Ok(Look::Found(()));
            }
            Some(_) => {}
        }
        // Typing the first character replaces what is selected; the rest is inserted at once. The browser takes three
        // events for a key, and draws after each of them.
        let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
        let backspace = BACKSPACE.to_string();
        self.press(if first.is_empty() { &backspace } else { first }).await;
        if !rest.is_empty() {
            self.window().command("Input.insertText", json!({ "text": rest })).await?;
        }
        let Some(held) = self.about(field, "return target.value", &Value::Null).await? else {
            return Ok(missing());
        };
        // The focus can be taken away in between, or arrive late.
        let is_lost = !rest.is_empty() && (held == first || held == rest);
        Ok(if is_lost { Look::NotYet(format!("it holds {held}")) } else { Look::Found(()) })
    }

    /// Chooses an option by its value.
    pub(crate) async fn pick(&self, field: &Target, value: &str) -> Result<Look<()>, Failure> {
        let chosen = if self.hands == Hands::Keyboard {
            if let Look::NotYet(why) = self.reach(field).await? {
                return Ok(Look::NotYet(why));
            }
            let script = "return [...target.options].findIndex((option) => option.value === given)
                - target.selectedIndex";
            let steps = self.about(field, script, &json!(value)).await?.and_then(|steps| steps.as_i64());
            let steps = steps.unwrap_or(0);
            let key = if steps < 0 { UP } else { DOWN };
            for _ in 0..steps.unsigned_abs() {
                self.press(&key.to_string()).await;
            }
            self.about(field, "return { chosen: target.value }", &Value::Null).await?
        } else {
            self.about(field, PICK, &json!(value)).await?
        };
        let Some(chosen) = chosen else { return Ok(missing()) };
        let is_chosen = chosen["chosen"] == json!(value);
        Ok(if is_chosen { Look::Found(()) } else { Look::NotYet(format!("{chosen}")) })
    }

    /// Chooses a file. The keyboard must reach the field; the system's file dialog is not ours.
    pub(crate) async fn put(&self, field: &Target, file: &str) -> Result<Look<()>, Failure> {
        if self.hands == Hands::Keyboard
            && let Look::NotYet(why) = self.reach(field).await?
        {
            return Ok(Look::NotYet(why));
        }
        let Some(handle) = self.handle(field).await? else { return Ok(missing()) };
        self.window()
            .command("DOM.setFileInputFiles", json!({ "files": [file], "objectId": handle }))
            .await?;
        Ok(Look::Found(()))
    }

    /// Steps through the page until an element has the focus, and checks that the focus shows.
    async fn reach(&self, target: &Target) -> Result<Look<()>, Failure> {
        let since = Instant::now();
        let (mut steps, mut has_skipped, mut goes_back) = (0, false, false);
        loop {
            let Some(focus) = self.about(target, FOCUS, &Value::Null).await? else { return Ok(missing()) };
            let is = |what: &str| focus[what] == json!(true);
            if is("there") && is("date") && goes_back {
                self.enter_again(target).await?;
                goes_back = false;
            } else if is("there") && is("shown") {
                return Ok(Look::Found(()));
            } else if is("there") {
                // The stylesheet is still on its way.
                assert!(since.elapsed() < FOCUS_LIMIT, "the focus does not show at {target:?}");
                tokio::time::sleep(POLL_INTERVAL).await;
            } else {
                assert!(steps < STEPS, "the keyboard does not reach {target:?}");
                steps += 1;
                // Only one radio button of a group is a step; the arrow keys lead to the others.
                if is("grouped") {
                    self.press(&DOWN.to_string()).await;
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
    async fn enter_again(&self, target: &Target) -> Result<(), Failure> {
        let is_there = "return document.activeElement === target";
        while self.about(target, is_there, &Value::Null).await? == Some(json!(true)) {
            self.press_with(SHIFT, TAB).await;
        }
        self.press(&TAB.to_string()).await;
        Ok(())
    }

    /// The first step into a page is the link that skips its frame.
    async fn skip_the_frame(&self) -> Result<(), Failure> {
        self.press(&TAB.to_string()).await;
        let is_skip = "return document.activeElement.matches('a.skip')";
        if self.window().evaluate(is_skip, &[]).await? == json!(true) {
            self.press(&ENTER.to_string()).await;
        }
        Ok(())
    }
}

/// A page may be gone before the browser could confirm what led away from it.
fn done_or_gone(answer: Result<Value, Failure>) -> Result<(), Failure> {
    match answer {
        Err(Failure::Final(why)) => Err(Failure::Final(why)),
        Ok(_) | Err(Failure::Passing(_)) => Ok(()),
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
