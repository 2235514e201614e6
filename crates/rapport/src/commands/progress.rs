//! Shows how far a copy is: as a bar on a terminal, otherwise as lines.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressStyle};
use rapport_store::copy::{Pace, Progress, Step, Watch};

/// Shows progress on standard error.
pub fn shown(pace: Pace) -> Watch<'static> {
    if !io::stderr().is_terminal() {
        return Watch::new(pace, |progress| {
            if let Some(line) = line(progress) {
                eprintln!("{line}");
            }
            true
        });
    }
    let bar = ProgressBar::no_length();
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {percent}%");
    let pages = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    let rows = ProgressStyle::with_template("{msg}: {pos} rows");
    let rows = rows.unwrap_or_else(|_| ProgressStyle::default_bar());
    Watch::new(pace, move |progress| {
        let message = match progress.step {
            Step::Pages => "copying pages".to_owned(),
            Step::Copying => format!("copying {}", progress.table),
            Step::Checking => format!("checking {}", progress.table),
        };
        bar.set_style(if progress.step == Step::Pages { pages.clone() } else { rows.clone() });
        if let Some(total) = progress.total {
            bar.set_length(total);
        }
        bar.set_message(message);
        bar.set_position(progress.done);
        true
    })
}

/// A line for each table that has rows, once it is done.
fn line(progress: Progress) -> Option<String> {
    let Progress { step, table, done, is_last, .. } = progress;
    let says_something = is_last && (step == Step::Pages || done > 0);
    says_something.then(|| match step {
        Step::Pages => format!("copied {done} pages"),
        Step::Copying => format!("copied {table}: {done} rows"),
        Step::Checking => format!("checked {table}: {done} rows"),
    })
}
