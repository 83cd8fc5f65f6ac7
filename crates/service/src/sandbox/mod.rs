//! What only a sandbox has: acting on one's own orders as payers and rails would, moving the clock,
//! disturbing webhooks, and paying by hand at a mock ATM or in a mock wallet.

mod chaos;
mod clock;
mod pages;
mod playground;
mod simulate;
mod texts;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;
use crate::domain::Environment;

pub(crate) use chaos::{__path_chaos, __path_set_chaos};
pub(crate) use clock::{__path_advance, __path_clock};
pub(crate) use simulate::__path_simulate;

/// In production these routes do not exist.
pub(crate) fn routes(environment: Environment) -> Router<App> {
    match environment {
        Environment::Production => Router::new(),
        Environment::Sandbox => Router::new()
            .route("/sandbox/simulate", post(simulate::simulate))
            .route("/sandbox/clock", get(clock::clock).post(clock::advance))
            .route("/sandbox/chaos", get(chaos::chaos).put(chaos::set_chaos))
            .merge(pages::routes())
            .merge(playground::routes()),
    }
}
