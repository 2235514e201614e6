//! What people write in the sample data.

use crate::contact::Kind;
use crate::pipeline::Status;

pub const SUBJECTS: [&str; 4] =
    ["Your question from last week", "A short introduction", "Following up on our call", "Next steps"];

pub const OPENINGS: [&str; 4] = [
    "Hello,\n\nYou asked how teams like yours get started. Would twenty minutes next week work for you?\n\n\
     Best regards",
    "Hello,\n\nThank you for your time yesterday. I've attached the overview that we talked about.\n\nBest regards",
    "Hello,\n\nOne of our partners mentioned that you're looking for something simpler. May I show you how we do \
     it?\n\nBest regards",
    "Hello,\n\nYour team has grown a lot this year. I'd like to hear what you're missing.\n\nBest regards",
];

pub const REPLIES: [&str; 4] = [
    "Thursday at ten works. Please invite my colleague too.",
    "Interesting. What would it cost for forty people?",
    "Could it read from our own database? That's the one thing we need.",
    "We'll decide on this next month. Please write again then.",
];

pub const CONTACTS: [(Kind, &str); 6] = [
    (Kind::Call, "Happy so far. Wants to add two teams in spring."),
    (Kind::Meeting, "Demo for the finance team. Good questions about exports."),
    (Kind::Call, "Explained the prices. They compare us with one other product."),
    (Kind::Email, "Sent the answers to their security questions."),
    (Kind::Meeting, "Met the new head of operations. Renewal looks safe."),
    (Kind::Other, "Met at the trade fair."),
];

pub const NOTES: [&str; 4] = [
    "Invoices go to their finance team, not to the person who ordered.",
    "Decides together with the sister company. Ask about both.",
    "Prefers a call over email.",
    "Budget is renewed in January.",
];

pub const FEATURES: [&str; 5] =
    ["dashboards.viewed", "reports.exported", "alerts.created", "api.called", "teams.invited"];

const LOST: [&str; 3] = ["No budget this year.", "Chose another product.", "Builds it themselves."];

/// Why an account was moved to a stage.
pub const fn reason(status: Status, place: usize) -> Option<&'static str> {
    match status {
        Status::Lost => Some(LOST[place % LOST.len()]),
        Status::DoNotContact => Some("Asked us to stop writing."),
        _ => None,
    }
}
