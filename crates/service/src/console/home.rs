//! GET /console: how it goes, and what needs somebody.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::SignedDuration;
use serde_json::json;

use super::access::Viewer;
use super::figures::hour_of;
use super::frame::{Frame, Refusal, Section, respond};
use crate::app::App;
use crate::domain::before;
use crate::store::{Attention, Figures};

#[derive(Template)]
#[template(path = "console/home.html")]
struct HomePage {
    frame: Frame,
    period: &'static str,
    together: Figures,
    volume: String,
    success: String,
    failing: String,
    lag: String,
    lag_max: String,
    attention: Attention,
    oldest_waiting: String,
    chart: String,
    rows: Vec<HourRow>,
}

struct HourRow {
    at: String,
    figures: Figures,
    amount: String,
}

pub(super) async fn home(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    // By hour for a day and a week, by day for a month.
    let (period, hours, step_hours) = match viewer.asked("period") {
        "7d" => ("7d", 7 * 24, 1),
        "30d" => ("30d", 30 * 24, 24),
        _ => ("24h", 24, 1),
    };
    let scope = viewer.narrowed(&app);
    let end = hour_of(app.clock.now());
    let start = before(end, SignedDuration::from_hours(hours - 1));
    let counted = app.store.figures(&scope, start).await?;
    let frame = Frame::new(&app, &viewer, Section::Home);
    let mut together = Figures::default();
    let mut steps = Vec::new();
    for step in 0..hours / step_hours {
        let from = start.saturating_add(SignedDuration::from_hours(step * step_hours));
        let from = from.unwrap_or(start).as_millisecond();
        let mut figures = Figures::default();
        let until = from + step_hours * 60 * 60 * 1_000;
        counted.range(from..until).for_each(|(_, hour)| figures.add(hour));
        together.add(&figures);
        steps.push((from, figures));
    }
    let attention = app.store.attention(&scope).await?;
    let oldest =
        attention.oldest_waiting_at_ms.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let settled = together.confirmed + together.cancelled;
    let page = HomePage {
        period,
        volume: frame.kwanza(together.confirmed_amount),
        success: frame.percent(together.confirmed, settled),
        failing: frame.percent(together.failures, together.attempts),
        lag: milliseconds(together.lag_ms_sum, together.tried),
        lag_max: milliseconds(together.lag_ms_max, i64::from(together.tried > 0)),
        oldest_waiting: oldest.map_or(String::new(), |at| frame.time(at)),
        chart: chart(&steps),
        rows: rows(&frame, &steps),
        together,
        attention,
        frame,
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}

fn milliseconds(sum: i64, of: i64) -> String {
    if of == 0 { "–".to_owned() } else { format!("{}\u{a0}ms", sum / of) }
}

/// The columns of the charts: time in seconds, then one list for each line.
fn chart(steps: &[(i64, Figures)]) -> String {
    let list = |of: &dyn Fn(&Figures) -> i64| -> Vec<i64> {
        steps.iter().map(|(_, figures)| of(figures)).collect()
    };
    json!({
        "at": steps.iter().map(|(from, _)| from / 1_000).collect::<Vec<_>>(),
        "orders": list(&|f| f.orders),
        "confirmed": list(&|f| f.confirmed),
        "cancelled": list(&|f| f.cancelled),
        "attempts": list(&|f| f.attempts),
        "failures": list(&|f| f.failures),
    })
    .to_string()
}

fn rows(frame: &Frame, steps: &[(i64, Figures)]) -> Vec<HourRow> {
    let busy = steps.iter().rev().filter(|(_, figures)| *figures != Figures::default());
    busy.map(|(from, figures)| HourRow {
        at: jiff::Timestamp::from_millisecond(*from).map_or(String::new(), |at| frame.time(at)),
        figures: *figures,
        amount: frame.kwanza(figures.confirmed_amount),
    })
    .collect()
}
