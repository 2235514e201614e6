//! What a person does on a page, by the names of buttons and fields. An action that leads to another page waits for
//! that page: whatever a test does next, it does there.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::chromium::Failure;
use crate::elements::Target;
use crate::sight::{Look, PATIENCE};
use crate::window::Document;
use crate::{Browser, Hands};

/// How long keys may take to lead somewhere before they are pressed again.
const KEYS_LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What a click does.
struct Clicked {
    /// The document in which it happens.
    document: Document,
    /// Whether it opens another page: on a link, or where it sends a form.
    leads_away: bool,
}

/// Whether a click on an element leads to another page. The script of the board moves a card without loading the page
/// again.
const LEADS_AWAY: &str = "
    const stays = given ? '[method=dialog]' : '[method=dialog], [data-move]';
    const isLink = target.matches('a[href]:not([href^=\"#\"], [download])');
    const sends = target.matches('button:not([type]), [type=submit]') && target.form && !target.form.matches(stays);
    return isLink || !!sends;";

impl Browser {
    /// Clicks the first link, button or menu that says exactly this.
    pub async fn click(&self, text: &str) {
        self.click_on(&Target::saying(text), text).await;
    }

    /// Clicks what a selector finds.
    pub async fn click_css(&self, selector: &str) {
        self.click_on(&Target::css(selector), selector).await;
    }

    /// Clicks a button whose form the browser does not send, because something in it is still missing.
    pub async fn click_in_vain(&self, text: &str) {
        self.click_times(1, &Target::saying(text), text).await;
    }

    /// Clicks a button that sends a form twice, as fast as possible.
    pub async fn click_twice(&self, text: &str) {
        let clicked = self.click_times(2, &Target::saying(text), text).await;
        self.leave(&clicked.document, &format!("clicking {text:?} twice")).await;
    }

    async fn click_on(&self, target: &Target, what: &str) {
        let clicked = self.click_times(1, target, what).await;
        if clicked.leads_away {
            self.leave(&clicked.document, &format!("clicking {what:?}")).await;
        } else if self.hands != Hands::NoScripts {
            self.let_it_react().await;
        }
    }

    /// Lets scripts do what they do after a click, such as moving the focus into a menu that opened. Nobody is so fast that
    /// they do something else before that.
    async fn let_it_react(&self) {
        let drawn = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))";
        match self.window().evaluate_async(drawn, &[]).await {
            Err(Failure::Final(why)) => panic!("after a click: {why}"),
            Ok(_) | Err(Failure::Passing(_)) => {}
        }
    }

    async fn click_times(&self, times: usize, target: &Target, what: &str) -> Clicked {
        self.until(&format!("{what:?} to click"), async || {
            let document = self.window().document();
            let aimed = match self.aim(target).await? {
                Look::Found(aimed) => aimed,
                Look::NotYet(why) => return Ok(Look::NotYet(why)),
            };
            let without_scripts = json!(self.hands == Hands::NoScripts);
            let Some(leads_away) = self.about(target, LEADS_AWAY, &without_scripts).await? else {
                return Ok(missing());
            };
            if self.window().document() != document {
                return Ok(Look::NotYet("the page is just being replaced".to_owned()));
            }
            self.push(&aimed, times).await?;
            Ok(Look::Found(Clicked { document, leads_away: leads_away == json!(true) }))
        })
        .await
    }

    /// Types into the field with this name, replacing what it held.
    pub async fn fill(&self, name: &str, text: &str) {
        self.fill_in(&Target::field(name), text).await;
    }

    /// The same in the field that a selector finds, if several have the same name.
    pub async fn fill_css(&self, selector: &str, text: &str) {
        self.fill_in(&Target::css(selector), text).await;
    }

    async fn fill_in(&self, field: &Target, text: &str) {
        self.in_field(field, text, async || self.write(field, text).await).await;
    }

    /// Chooses a file.
    pub async fn attach(&self, name: &str, file: &str) {
        let field = Target::field(name);
        self.in_field(&field, file, async || self.put(&field, file).await).await;
    }

    /// Chooses an option by its value.
    pub async fn choose(&self, name: &str, value: &str) {
        self.choose_in(&Target::field(name), value).await;
    }

    /// The same in the field that a selector finds, if several have the same name.
    pub async fn choose_css(&self, selector: &str, value: &str) {
        self.choose_in(&Target::css(selector), value).await;
    }

    async fn choose_in(&self, field: &Target, value: &str) {
        self.in_field(field, value, async || self.pick(field, value).await).await;
    }

    /// Does something with a field, and does it again if the field was replaced in the meantime.
    async fn in_field(&self, field: &Target, value: &str, act: impl AsyncFn() -> Result<Look<()>, Failure>) {
        self.until(&format!("the field {field:?} to take {value:?}"), act).await;
    }

    /// Presses keys that lead to another page, such as Enter in a field, and waits for it.
    pub async fn press_and_leave(&self, keys: &str) {
        self.window().settle().await;
        let document = self.window().document();
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
                if Instant::now() > deadline || self.path().await == path {
                    return self.arrive(path).await;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// Moves the mouse over what a selector finds, without a click.
    pub async fn hover(&self, selector: &str) {
        let target = Target::css(selector);
        self.until(&format!("{selector} to hover over"), async || {
            Ok(match self.point_at(&target).await? {
                Look::Found(point) => {
                    self.move_mouse(point).wait().await?;
                    Look::Found(())
                }
                Look::NotYet(why) => Look::NotYet(why),
            })
        })
        .await;
    }

    /// Drags one element onto another, as a mouse does.
    pub async fn drag(&self, from: &str, to: &str) {
        // When headless, Chromium creates no drag events from mouse moves, so they are created here.
        let script = "
            const [from, to] = [...arguments].map((selector) => document.querySelector(selector));
            const dataTransfer = new DataTransfer();
            const send = (target, kind) =>
                target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer }));
            send(from, 'dragstart'); send(to, 'dragover'); send(to, 'drop'); send(from, 'dragend');";
        self.expect_some(from).await;
        self.expect_some(to).await;
        match self.window().evaluate(script, &[json!(from), json!(to)]).await {
            Err(Failure::Final(why)) => panic!("cannot drag {from}: {why}"),
            Ok(_) | Err(Failure::Passing(_)) => {}
        }
    }
}

pub fn missing<T>() -> Look<T> {
    Look::NotYet("it isn't there".to_owned())
}
