//! GET /console/audit: who did what; operators only.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::access::Viewer;
use super::frame::{Frame, Refusal, Section, respond};
use super::links::{Link, PAGE_READ, cut};
use crate::app::App;
use crate::domain::Permission;
use crate::store::{AuditFilter, change_text};

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage {
    frame: Frame,
    rows: Vec<AuditView>,
    subject: String,
    seal: String,
    sealed_to: i64,
    next_url: String,
}

struct AuditView {
    id: i64,
    at: String,
    actor: String,
    action: String,
    action_text: String,
    subject: String,
    change: String,
    cause: String,
    request_id: String,
}

pub(super) async fn history(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ReadAudit)?;
    let subject = viewer.asked("subject").to_owned();
    let filter = AuditFilter {
        before_id: viewer.asked("before").parse().ok(),
        subject: Some(subject.clone()).filter(|text| !text.is_empty()),
    };
    let mut rows = app.store.audit_page(filter, PAGE_READ).await?;
    let next = cut(&mut rows, |row| row.id.to_string());
    let seal = app.store.last_seal().await?;
    let here = Link::to("/console/audit").with("subject", &subject);
    let frame = Frame::new(&app, &viewer, Section::Audit);
    let page = AuditPage {
        sealed_to: seal.as_ref().map_or(0, |seal| seal.last_id),
        seal: seal.map_or(String::new(), |seal| seal.to_string()),
        rows: rows
            .into_iter()
            .map(|row| AuditView {
                id: row.id,
                at: frame.exact_time(row.at),
                actor: row.actor,
                action_text: frame.t.action(&row.action).to_owned(),
                action: row.action,
                subject: row.subject,
                change: change_text(row.before.as_deref(), row.after.as_deref()),
                cause: row.cause,
                request_id: row.request_id,
            })
            .collect(),
        subject,
        next_url: next.map_or(String::new(), |next| here.with("before", &next).text()),
        frame,
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}
