//! Money that fits no order: late, another amount, too much, nobody's.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::access::{Form, Id, Viewer};
use super::frame::{Frame, Refusal, Section, done, respond};
use super::links::{Link, PAGE_READ, cut};
use crate::app::App;
use crate::domain::{ExceptionKind, Label, Order, Permission};
use crate::orders::{self, Resolution, ResolveError};
use crate::store::{ExceptionFilter, ExceptionRecord, Resolved};

#[derive(Template)]
#[template(path = "console/exceptions.html")]
struct ExceptionsPage {
    frame: Frame,
    rows: Vec<ExceptionRow>,
    all: bool,
    may_resolve: bool,
    next_url: String,
}

struct ExceptionRow {
    id: i64,
    kind_text: &'static str,
    meaning: &'static str,
    reference: String,
    rail: String,
    rail_payment_id: String,
    amount: String,
    /// What the order costs, where another amount came.
    expected: String,
    /// What the rail told of, where nobody knows it: not always a payment.
    named: String,
    at: String,
    held: bool,
    resolved: String,
}

/// GET /console/exceptions
pub(super) async fn exceptions(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let all = viewer.asked("show") == "all";
    let filter = ExceptionFilter {
        scope: viewer.narrowed(&app),
        before: viewer.asked("before").parse().ok(),
        resolved_too: all,
        ..Default::default()
    };
    let mut lines = app.store.exceptions(filter, PAGE_READ).await?;
    let next = cut(&mut lines, |line| line.id.to_string());
    let frame = Frame::new(&app, &viewer, Section::Exceptions);
    let here = Link::to("/console/exceptions")
        .with("application", viewer.asked("application"))
        .with("show", if all { "all" } else { "" });
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        let order = match &line.reference_number {
            Some(reference) => app.store.order_by_reference(reference).await?,
            None => None,
        };
        rows.push(row(&frame, &viewer, line, order.as_ref()));
    }
    let page = ExceptionsPage {
        rows,
        all,
        may_resolve: viewer.may(Permission::ResolveExceptions),
        next_url: next.map_or(String::new(), |next| here.with("before", &next).text()),
        frame,
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}

fn row(
    frame: &Frame,
    viewer: &Viewer,
    line: ExceptionRecord,
    order: Option<&Order>,
) -> ExceptionRow {
    let held = order.is_some_and(|order| orders::is_held_for(&line, order));
    let expected = order.filter(|_| line.kind == ExceptionKind::Mismatch);
    ExceptionRow {
        id: line.id,
        kind_text: frame.t.exception_kind(line.kind),
        meaning: frame.t.exception_meaning(line.kind, held),
        reference: line.reference_number.map_or(String::new(), |order| order.as_str().to_owned()),
        rail: line.rail,
        rail_payment_id: line.rail_payment_id,
        amount: frame.centimos(line.amount.get()),
        expected: expected.map_or(String::new(), |order| frame.kwanza(order.terms.amount.get())),
        named: if line.kind == ExceptionKind::Unmatched { line.detail } else { String::new() },
        at: frame.exact_time(line.created_at),
        held,
        resolved: line.resolved.map_or(String::new(), |Resolved { at, by, resolution }| {
            let by = if viewer.is_operator() { by } else { frame.t.operator.to_owned() };
            format!("{} · {by} · {}", frame.t.resolution(&resolution), frame.time(at))
        }),
    }
}

/// POST /console/exceptions/{id}/resolve
pub(super) async fn resolve(
    State(app): State<App>,
    viewer: Viewer,
    id: Id,
    form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ResolveExceptions)?;
    let resolution = match form.value("resolution") {
        "accept" => Resolution::Accept,
        "refund" => Resolution::Refund,
        "dismiss" => Resolution::Dismiss,
        _ => return Err(Refusal::BadForm),
    };
    let why = Label::parse(form.value("reason").trim()).map_err(|_| Refusal::BadForm)?;
    match orders::resolve(&app, id.number()?, resolution, &viewer.author(), why.as_str()).await {
        Ok(_) => Ok(done("/console/exceptions", "resolved")),
        Err(ResolveError::NotFound(_)) => Err(Refusal::NotFound),
        Err(ResolveError::Store(fault)) => Err(fault.into()),
        Err(ResolveError::Already { .. }) => Err(Refusal::Conflict(|t| t.resolved_already)),
        Err(ResolveError::NotAcceptable) => Err(Refusal::Conflict(|t| t.not_acceptable)),
        Err(ResolveError::Held) => Err(Refusal::Conflict(|t| t.order_held)),
    }
}
