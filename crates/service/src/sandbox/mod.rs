//! What only a sandbox has: acting on one's own orders as payers and rails would.

mod simulate;

use axum::Router;
use axum::routing::post;

use crate::app::App;
use crate::domain::Environment;

pub(crate) use simulate::__path_simulate;

/// In production these routes do not exist.
pub(crate) fn routes(environment: Environment) -> Router<App> {
    match environment {
        Environment::Sandbox => Router::new().route("/sandbox/simulate", post(simulate::simulate)),
        Environment::Production => Router::new(),
    }
}
