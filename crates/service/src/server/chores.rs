//! What must happen now and then, whoever calls.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::task::JoinSet;

use crate::app::{App, Clock};
use crate::domain::{Environment, before};
use crate::rails::Rail;
use crate::{audit, console, orders};

/// How often this node looks whether partners or applications changed; tokens of a disabled
/// partner die within this.
const DIRECTORY_PERIOD: Duration = Duration::from_secs(1);
/// How often the clock is looked at.
const CLOCK_PERIOD: Duration = Duration::from_millis(500);
/// How often the clock is compared with the database's.
const COMPARE_PERIOD: Duration = Duration::from_secs(60);
/// How often connectors are asked what they can do.
const RAILS_PERIOD: Duration = Duration::from_secs(30);
/// The same, the first time, of one that has not answered yet.
const NEW_RAIL_PERIOD: Duration = Duration::from_secs(2);
const FORGET_PERIOD: Duration = Duration::from_secs(60);
/// How often what partners asked is written.
const LOG_PERIOD: Duration = Duration::from_secs(1);
/// How long it is kept.
const LOG_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How often the history is sealed.
const SEAL_PERIOD: Duration = Duration::from_secs(5);

/// They never end by themselves.
pub(super) fn begin(app: &App) -> JoinSet<()> {
    let mut chores = JoinSet::new();
    chores.spawn(keep_house(app.clone()));
    chores.spawn(watch_the_clock(app.clone()));
    chores.spawn(compare_clocks(app.clone()));
    chores.spawn(write_log(app.clone()));
    chores.spawn(forget_old(app.clone()));
    chores.spawn(seal_history(app.clone()));
    chores.spawn(console::keep_figures(app.clone()));
    for rail in app.rails.all().iter().filter(|rail| rail.connector().is_some()) {
        chores.spawn(ask_rail(app.clone(), Arc::clone(rail)));
    }
    chores
}

/// What is known of partners is read again, figures are gathered, and limits of those who are gone are forgotten.
async fn keep_house(app: App) {
    let mut directory = tokio::time::interval(DIRECTORY_PERIOD);
    let mut forget = tokio::time::interval(FORGET_PERIOD);
    loop {
        tokio::select! {
            _ = directory.tick() => {
                app.metrics.fold();
                if let Err(fault) = app.directory.refresh(&app.store).await {
                    tracing::warn!(%fault, "the directory could not be read again");
                }
            }
            _ = forget.tick() => app.limits.forget_idle(),
        }
    }
}

/// What partners asked.
async fn write_log(app: App) {
    let mut write = tokio::time::interval(LOG_PERIOD);
    loop {
        write.tick().await;
        let (requests, uses) = app.request_log.take();
        let logged = app.store.log_requests(requests).await;
        let noted = app.store.note_key_uses(uses).await;
        if let Err(fault) = logged.and(noted) {
            tracing::warn!(%fault, "part of the request log is lost");
        }
    }
}

/// Requests, windows and sessions that are too old.
async fn forget_old(app: App) {
    let mut forget = tokio::time::interval(FORGET_PERIOD);
    loop {
        forget.tick().await;
        let before = before(app.clock.now(), LOG_KEPT);
        for forgotten in [
            app.store.forget_requests(before).await,
            app.store.forget_visits(before).await,
            app.store.forget_ended_access(app.clock.machine_now()).await,
        ] {
            if let Err(fault) = forgotten {
                tracing::warn!(%fault, "what is old is kept for now");
            }
        }
    }
}

async fn seal_history(app: App) {
    let mut seal = tokio::time::interval(SEAL_PERIOD);
    let mut sealer = audit::Sealer::default();
    loop {
        seal.tick().await;
        if let Err(fault) = sealer.tick(&app).await {
            tracing::warn!(%fault, "the history could not be sealed");
        }
    }
}

/// Deadlines, attempts to follow, queues of rails: whatever the clock brings.
async fn watch_the_clock(app: App) {
    // Nobody's money is lost by orders of a sandbox.
    if app.environment == Environment::Production {
        until_the_clock_is_right(&app).await;
    }
    let mut leapt = false;
    loop {
        let leap = app.clock.leap();
        if leapt == leap.is_zero() {
            leapt = !leapt;
            tell_leap(leap);
        }
        if let Err(fault) = orders::begin_due(&app).await {
            tracing::warn!(%fault, "deadlines wait: the database is not available");
        }
        tokio::time::sleep(CLOCK_PERIOD).await;
        // Nobody moves the clock of production, and whoever looks at its console must not keep deadlines waiting.
        if app.environment == Environment::Production {
            continue;
        }
        // Another node of this sandbox may have moved the clock.
        match app.store.clock_ahead().await {
            Ok(ahead) => app.clock.be_ahead_by(ahead),
            Err(fault) => tracing::debug!(%fault, "the clock could not be compared"),
        }
    }
}

/// What a clock that is wrong from the start would end, nothing brings back: the database server's is asked first.
async fn until_the_clock_is_right(app: &App) {
    let mut look = tokio::time::interval(CLOCK_PERIOD);
    let mut was_told = false;
    loop {
        look.tick().await;
        match app.store.server_time().await {
            Ok(None) => return,
            Ok(Some(theirs)) => {
                let off = app.clock.machine_now().duration_since(theirs);
                if off.unsigned_abs() <= Clock::LEAP_MAX.unsigned_abs() {
                    return;
                }
                if std::mem::replace(&mut was_told, true) {
                    continue;
                }
                let seconds = off.as_secs();
                tracing::error!(
                    seconds,
                    "deadlines wait: this machine's clock is not the database server's. Set it, then restart the service"
                );
            }
            Err(fault) => tracing::warn!(%fault, "deadlines wait: the database is not available"),
        }
    }
}

fn tell_leap(leap: SignedDuration) {
    if leap.is_zero() {
        tracing::warn!("the machine's clock is right again");
    } else {
        let seconds = leap.as_secs();
        tracing::error!(
            seconds,
            "the machine's clock has leapt and is not followed: if it is right now, restart the service"
        );
    }
}

/// What one node begins another goes on with, each by its own clock.
async fn compare_clocks(app: App) {
    let mut compare = tokio::time::interval(COMPARE_PERIOD);
    let mut was_off = false;
    loop {
        compare.tick().await;
        let watch = app.clock.stopwatch();
        // Whether the database is there, others tell.
        let Ok(Some(theirs)) = app.store.server_time().await else { continue };
        let off = app.clock.machine_now().duration_since(theirs);
        app.metrics.clock_off.set(off.as_secs_f64());
        let may_be = Clock::OFF_MAX.unsigned_abs() + watch.elapsed();
        let is_off = off.unsigned_abs() > may_be;
        if is_off != was_off {
            was_off = is_off;
            tell_off(off, is_off);
        }
    }
}

fn tell_off(off: SignedDuration, is_off: bool) {
    if is_off {
        let seconds = off.as_secs();
        tracing::error!(
            seconds,
            "this machine's clock is not the database server's: let NTP set both, because nodes that differ end \
             orders too early or too late"
        );
    } else {
        tracing::warn!("this machine's clock is the database server's again");
    }
}

/// What a connector can do now; the queue of one that keeps it is read from now on. Each has a task of
/// its own, so that one that hangs keeps nobody waiting.
async fn ask_rail(app: App, rail: Arc<Rail>) {
    let mut asked = 0_u32;
    let mut was_up = true;
    let Some(rail) = rail.connector() else { return };
    loop {
        let up = app.metrics.rail_up(rail.name());
        let answered = rail.refresh(app.clock.now()).await;
        let is_up = answered.is_ok();
        up.set(if is_up { 1.0 } else { 0.0 });
        match answered {
            Err(fault) if was_up => {
                tracing::warn!(rail = rail.name(), %fault, "a rail does not say what it can do");
            }
            Ok(()) if !was_up => tracing::info!(rail = rail.name(), "a rail answers again"),
            Ok(()) | Err(_) => {}
        }
        was_up = is_up;
        if rail.capabilities().is_some_and(|can| can.has_queue)
            && let Err(fault) = app.store.open_queue(rail.name(), app.clock.now()).await
        {
            tracing::warn!(%fault, "the queue of a rail could not be noted");
        }
        let known = rail.capabilities().is_some();
        tokio::time::sleep(until_asked_again(asked, known)).await;
        asked = asked.saturating_add(1);
    }
}

/// Soon at first: it may be starting, as we are.
fn until_asked_again(asked: u32, known: bool) -> Duration {
    match known {
        true => RAILS_PERIOD,
        false => NEW_RAIL_PERIOD.saturating_mul(2_u32.saturating_pow(asked)).min(RAILS_PERIOD),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rail_that_has_not_answered_yet_is_soon_asked_again_and_then_less_often() {
        let seconds = |known| {
            let pause = |asked| until_asked_again(asked, known).as_secs();
            [0, 1, 2, 3, 4, u32::MAX].map(pause)
        };
        assert_eq!(seconds(false), [2, 4, 8, 16, 30, 30]);
        assert_eq!(seconds(true), [30; 6]);
    }
}
