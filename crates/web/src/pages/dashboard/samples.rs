//! Sample data: two buttons, one on the first-run page and one above every page while there is some.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use rapport_app::sample::{AddSampleData, Added, RemoveSampleData, Removed};

use crate::pages::Pages;
use crate::pages::kit::action::Action;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::refusal::Refusal;
use crate::pages::words::number::counted;

pub fn routes() -> Router<Pages> {
    Router::new().route("/sample-data", post(add)).route("/sample-data/remove", post(remove))
}

async fn add(action: Action) -> Result<Response, Refusal> {
    let added = action.submit(AddSampleData).await.map_err(|error| action.visitor.refused(error))?;
    action.done("/", said_after_adding(added))
}

fn said_after_adding(added: Added) -> Flash {
    match added {
        Added::Accounts(accounts) => {
            let accounts = i64::try_from(accounts).unwrap_or(0);
            Flash::good(format!("Added {}.", counted(accounts, "sample account", "sample accounts")))
        }
        Added::Before => Flash::good("The sample data is already there."),
        Added::HasAccounts => Flash::bad(
            "Your company has accounts of its own now, so no sample data was added. It would be mixed up with them.",
        ),
    }
}

async fn remove(action: Action) -> Result<Response, Refusal> {
    let removed = action.submit(RemoveSampleData).await.map_err(|error| action.visitor.refused(error))?;
    action.done("/", said_after_removing(&removed))
}

fn said_after_removing(removed: &Removed) -> Flash {
    let kept = match removed.kept_channels {
        0 => "",
        1 => " One sample channel stays, because an account of yours came through it.",
        _ => " Some sample channels stay, because accounts of yours came through them.",
    };
    Flash::good(format!("The sample data is removed.{kept}"))
}
