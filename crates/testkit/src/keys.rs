//! The keyboard. Keys that write nothing have the characters that WebDriver gave them.

use serde_json::{Value, json};

use crate::Browser;
use crate::chromium::{Answer, Failure};

pub const BACKSPACE: char = '\u{e003}';
pub const TAB: char = '\u{e004}';
pub const ENTER: char = '\u{e007}';
pub const SHIFT: char = '\u{e008}';
pub const CONTROL: char = '\u{e009}';
pub const ESCAPE: char = '\u{e00c}';
pub const UP: char = '\u{e013}';
pub const DOWN: char = '\u{e015}';

/// What the browser calls those keys: their name, their place on the keyboard and their number.
const NAMED: [(char, &str, &str, u32); 8] = [
    (BACKSPACE, "Backspace", "Backspace", 8),
    (TAB, "Tab", "Tab", 9),
    (ENTER, "Enter", "Enter", 13),
    (SHIFT, "Shift", "ShiftLeft", 16),
    (CONTROL, "Control", "ControlLeft", 17),
    (ESCAPE, "Escape", "Escape", 27),
    (UP, "ArrowUp", "ArrowUp", 38),
    (DOWN, "ArrowDown", "ArrowDown", 40),
];
/// The bits that say that a key is held.
const CONTROL_BIT: u32 = 2;
const SHIFT_BIT: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Motion {
    Down,
    Up,
}

impl Browser {
    /// Presses keys wherever the focus is, one after the other; `\u{e007}` is Enter.
    pub async fn press(&self, keys: &str) {
        self.window().settle().await;
        let motions = keys.chars().flat_map(|key| [(key, Motion::Down), (key, Motion::Up)]);
        self.perform(motions.map(|(key, motion)| event(key, motion, 0)), keys).await;
    }

    /// Presses a key while another one is held.
    pub async fn press_with(&self, held: char, key: char) {
        self.window().settle().await;
        let bits = match held {
            CONTROL => CONTROL_BIT,
            SHIFT => SHIFT_BIT,
            _ => panic!("{held:?} is not a key to hold"),
        };
        let motions = [
            (held, Motion::Down, bits),
            (key, Motion::Down, bits),
            (key, Motion::Up, bits),
            (held, Motion::Up, 0),
        ];
        self.perform(motions.map(|(key, motion, bits)| event(key, motion, bits)), &key.to_string()).await;
    }

    async fn perform(&self, events: impl IntoIterator<Item = Value>, keys: &str) {
        let send = |event| self.window().send("Input.dispatchKeyEvent", event);
        let answers: Vec<Answer> = events.into_iter().map(send).collect();
        for answer in answers {
            // Keys that lead to another page may work before the browser could confirm them.
            if let Err(Failure::Final(why)) = answer.wait().await {
                panic!("{keys:?}: {why}");
            }
        }
    }
}

fn event(character: char, motion: Motion, held: u32) -> Value {
    let named = NAMED.iter().find(|(named, ..)| *named == character);
    let (name, place, number) = match named {
        Some((_, name, place, number)) => ((*name).to_owned(), (*place).to_owned(), *number),
        None => written(character),
    };
    let text = match character {
        // With Control, a key doesn't write.
        _ if motion == Motion::Up || held & CONTROL_BIT != 0 => None,
        ENTER => Some('\r'),
        _ if named.is_some() => None,
        _ => Some(character),
    };
    let kind = match (motion, text) {
        (Motion::Up, _) => "keyUp",
        (Motion::Down, Some(_)) => "keyDown",
        (Motion::Down, None) => "rawKeyDown",
    };
    let mut event = json!({
        "type": kind, "key": name, "code": place, "windowsVirtualKeyCode": number, "modifiers": held,
    });
    if let Some(text) = text {
        event["text"] = json!(text);
    }
    event
}

/// The name, the place and the number of a key that writes a character.
fn written(character: char) -> (String, String, u32) {
    let upper = character.to_ascii_uppercase();
    let place = match upper {
        'A'..='Z' => format!("Key{upper}"),
        '0'..='9' => format!("Digit{upper}"),
        ' ' => "Space".to_owned(),
        _ => String::new(),
    };
    let number = if place.is_empty() { 0 } else { u32::from(upper) };
    (character.to_string(), place, number)
}
