//! POST /console/clock: a sandbox moves to a later time, at most sixty days at once.

use axum::extract::State;
use axum::response::Response;
use jiff::SignedDuration;

use super::access::{Form, Viewer};
use super::frame::{Refusal, done, own_path};
use crate::app::App;
use crate::domain::{Environment, Permission};
use crate::simulation::travel;

const MINUTES_MAX: i64 = 60 * 24 * 60;

pub(super) async fn advance(
    State(app): State<App>,
    viewer: Viewer,
    form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::Simulate)?;
    if app.environment == Environment::Production {
        return Err(Refusal::NotFound);
    }
    let minutes: i64 = form.value("minutes").parse().map_err(|_| Refusal::BadForm)?;
    if !(1..=MINUTES_MAX).contains(&minutes) {
        return Err(Refusal::BadForm);
    }
    let by = viewer.author();
    let told = format!("{minutes} min");
    app.store.note(app.clock.now(), &by, "clock.advance", "clock", &told).await?;
    let arrived = travel(&app, SignedDuration::from_mins(minutes)).await?;
    let back = own_path(form.value("back"));
    Ok(done(&back, if arrived { "clock" } else { "clock_moving" }))
}
