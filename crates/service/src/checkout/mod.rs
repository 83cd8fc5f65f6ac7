//! The hosted checkout (spec 4.5): what a payer sees between the merchant's button and the money.
//!
//! Every screen is rendered here, from what is stored; the page's script only asks whether it
//! changed. So a payer who reloads, loses the network or comes back from an app sees the truth.

mod assets;
mod cancel;
mod notice;
mod page;
mod pay;
mod payment;
mod presence;
mod screen;
mod session;
mod status;
mod texts;
mod view;
mod visit;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;

// The sandbox's pages look like these.
pub(crate) use assets::css_url;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/checkout/{reference}", get(page::page))
        .route("/checkout/{reference}/pay", post(pay::pay))
        .route("/checkout/{reference}/cancel", post(cancel::cancel))
        .route("/checkout/{reference}/status", get(status::status))
        .route("/checkout/{reference}/left", post(presence::left))
        .route("/checkout/{reference}/state", get(presence::state))
        .route("/checkout/assets/{name}", get(assets::asset))
}
