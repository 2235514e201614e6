//! Contact reminders on both engines, with a clock that tests move. Each line of the interface document's
//! "Contact-due rules" and of the decisions on the cadence is a named test.

mod contact;
mod corrections;
mod episodes;
mod harness;
mod messages;
mod nodes;
mod snooze;
mod stages;
mod waking;
