//! Orders: the list with its filters, a search by any id, and the list as a file.

use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use http_body_util::channel::Channel;
use hyper::body::Bytes;
use jiff::civil::Date;

use super::access::Viewer;
use super::frame::{Frame, Refusal, Section, respond};
use super::links::{Link, PAGE_ROWS};
use super::webhooks;
use crate::app::{App, Seat};
use crate::domain::{Centimos, Status, luanda_midnight};
use crate::http::Streaming;
use crate::store::{OrderFilter, OrderLine, Scope};

const EXPORT_ROWS: usize = 1_000;
const PART_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Template)]
#[template(path = "console/orders.html")]
struct OrdersPage {
    frame: Frame,
    rows: Vec<OrderRow>,
    applications: Vec<(String, String)>,
    application: String,
    status: String,
    amount: String,
    from: String,
    to: String,
    search: String,
    nothing_found: bool,
    next_url: String,
    first_url: String,
    csv_url: String,
    /// Where fresh rows come from; older pages stay as they are.
    live_url: String,
}

impl OrdersPage {
    /// Nothing is asked for, and nothing follows.
    fn of(frame: Frame, rows: Vec<OrderRow>, applications: Vec<(String, String)>) -> Self {
        Self {
            frame,
            rows,
            applications,
            application: String::new(),
            status: String::new(),
            amount: String::new(),
            from: String::new(),
            to: String::new(),
            search: String::new(),
            nothing_found: false,
            next_url: String::new(),
            first_url: String::new(),
            csv_url: String::new(),
            live_url: String::new(),
        }
    }
}

struct OrderRow {
    reference: String,
    external: String,
    application: String,
    name: String,
    status: &'static str,
    status_text: &'static str,
    amount: String,
    at: String,
}

/// GET /console/orders
pub(super) async fn orders(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let before = Some(viewer.asked("before").to_owned()).filter(|cursor| !cursor.is_empty());
    let scope = viewer.narrowed(&app);
    let page = app.store.order_lines(&scope, filter(&viewer), before.clone(), PAGE_ROWS).await?;
    let frame = Frame::new(&app, &viewer, Section::Orders);
    let here = Link::to("/console/orders")
        .with("application", viewer.asked("application"))
        .with("status", viewer.asked("status"))
        .with("amount", viewer.asked("amount"))
        .with("from", viewer.asked("from"))
        .with("to", viewer.asked("to"));
    let rows = page.rows.iter().map(|line| row(&app, &frame, line)).collect();
    let page = OrdersPage {
        application: viewer.asked("application").to_owned(),
        status: viewer.asked("status").to_owned(),
        amount: viewer.asked("amount").to_owned(),
        from: viewer.asked("from").to_owned(),
        to: viewer.asked("to").to_owned(),
        next_url: page.next.map_or(String::new(), |next| here.clone().with("before", &next).text()),
        first_url: before.as_ref().map_or(String::new(), |_| here.text()),
        live_url: if before.is_none() { here.text() } else { String::new() },
        csv_url: here.at("/console/orders.csv").text(),
        ..OrdersPage::of(frame, rows, viewer.application_choices(&app))
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}

/// GET /console/search?id=…: straight to what was found.
pub(super) async fn search(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    const ID_CHARS_MAX: usize = 200;
    let id: String = viewer.asked("id").trim().chars().take(ID_CHARS_MAX).collect();
    let partner = viewer.person.partner;
    if app.store.logged_request(partner, &id).await?.is_some() {
        return Ok(Redirect::to(&format!("/console/requests/{id}")).into_response());
    }
    match webhooks::find(&app, &viewer, &id).await {
        Ok(_) => return Ok(Redirect::to(&format!("/console/webhooks/{id}")).into_response()),
        Err(Refusal::NotFound) => {}
        Err(refusal) => return Err(refusal),
    }
    let rails: Vec<_> = app.rails.all().iter().map(|rail| rail.name().to_owned()).collect();
    let found = app.store.find_orders(&viewer.scope, &id, &rails).await?;
    if let [only] = &found[..] {
        return Ok(Redirect::to(&format!("/console/orders/{}", only.as_str())).into_response());
    }
    let frame = Frame::new(&app, &viewer, Section::Orders);
    let mut rows = Vec::new();
    for reference in &found {
        if let Some(order) = app.store.order_by_reference(reference).await? {
            rows.push(row(&app, &frame, &order.into()));
        }
    }
    let page = OrdersPage {
        nothing_found: rows.is_empty(),
        search: id,
        ..OrdersPage::of(frame, rows, viewer.application_choices(&app))
    };
    let status = if page.nothing_found { StatusCode::NOT_FOUND } else { StatusCode::OK };
    Ok(respond(status, &page, &headers))
}

/// GET /console/orders.csv: every order of the filter, as it is read.
pub(super) async fn export(State(app): State<App>, viewer: Viewer) -> Result<Response, Refusal> {
    let seat = app.exporting.take(viewer.house()).ok_or(Refusal::TooMany)?;
    let (scope, filter) = (viewer.narrowed(&app), filter(&viewer));
    app.store
        .note(app.clock.now(), &viewer.author(), "orders.export", "orders", &viewer.here)
        .await?;
    let (sender, body) = Channel::<Bytes, ExportBrokeOff>::new(1);
    tokio::spawn(write_csv(app, scope, filter, sender, seat));
    let mut response = Response::new(Body::new(body));
    response.extensions_mut().insert(Streaming);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"orders.csv\""),
    );
    Ok(response)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the export broke off")]
struct ExportBrokeOff;

async fn write_csv(
    app: App,
    scope: Scope,
    filter: OrderFilter,
    mut sender: http_body_util::channel::Sender<Bytes, ExportBrokeOff>,
    // The last, so that it is free before the reader sees the end.
    _seat: Seat,
) {
    let mut before = None;
    let mut text = String::from(
        "referenceNumber,externalTransactionId,application,paymentStatus,amount,name,createdAt\r\n",
    );
    loop {
        let page = match app.store.order_lines(&scope, filter, before, EXPORT_ROWS).await {
            Ok(page) => page,
            Err(fault) => {
                tracing::warn!(%fault, "an export broke off");
                // Cut short, not ended well: the reader's program must notice.
                sender.abort(ExportBrokeOff);
                return;
            }
        };
        for line in &page.rows {
            let cells = [
                line.reference_number.as_str(),
                &line.external_transaction_id,
                &application_name(&app, line),
                line.status.code(),
                &line.amount.to_string(),
                &line.name,
                &line.created_at.to_string(),
            ];
            let cells: Vec<_> = cells.into_iter().map(cell).collect();
            text.push_str(&cells.join(","));
            text.push_str("\r\n");
        }
        // Whoever does not read any more gives up the seat, whatever becomes of the connection.
        let part = sender.send_data(Bytes::from(std::mem::take(&mut text)));
        match tokio::time::timeout(PART_TIMEOUT, part).await {
            Ok(Ok(())) => {}
            // Nobody is there any more.
            Ok(Err(_)) => return,
            Err(_) => return sender.abort(ExportBrokeOff),
        }
        match page.next {
            Some(next) => before = Some(next),
            None => return,
        }
    }
}

/// A cell that a spreadsheet takes for a text, whatever it begins with.
fn cell(text: &str) -> String {
    // Some spreadsheets take the wide signs of Asian keyboards for the narrow ones.
    let formula = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    let mut harmless = String::with_capacity(text.len() + 1);
    // Spreadsheets of other countries begin a cell after a semicolon or a tabulator, and read past quotes and spaces.
    let mut begins = true;
    for sign in text.chars() {
        if begins && formula.contains(&sign) {
            harmless.push('\'');
        }
        harmless.push(sign);
        begins = matches!(sign, ';' | ',' | '\t') || begins && matches!(sign, '"' | ' ');
    }
    if harmless.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", harmless.replace('"', "\"\""))
    } else {
        harmless
    }
}

fn filter(viewer: &Viewer) -> OrderFilter {
    let day = |name: &str| viewer.asked(name).parse::<Date>().ok();
    OrderFilter {
        status: Status::from_code(viewer.asked("status")),
        amount: asked_amount(viewer.asked("amount")),
        since: day("from").and_then(luanda_midnight),
        until: day("to").and_then(|day| day.tomorrow().ok()).and_then(luanda_midnight),
    }
}

/// In kwanza; what cannot be read as money fits no order, instead of all.
fn asked_amount(text: &str) -> Option<i64> {
    const NO_ORDERS: i64 = 0;
    let typed = Centimos::typed(text).and_then(Centimos::whole_kwanza);
    (!text.trim().is_empty()).then(|| typed.unwrap_or(NO_ORDERS))
}

fn row(app: &App, frame: &Frame, line: &OrderLine) -> OrderRow {
    OrderRow {
        reference: line.reference_number.as_str().to_owned(),
        external: line.external_transaction_id.clone(),
        application: application_name(app, line),
        name: line.name.clone(),
        status: line.status.code(),
        status_text: frame.t.status(line.status),
        amount: frame.kwanza(line.amount),
        at: frame.time(line.created_at),
    }
}

fn application_name(app: &App, line: &OrderLine) -> String {
    let known = app.directory.known();
    known.application_by_id(line.application).map_or(String::new(), |one| one.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_asked_for_as_it_is_shown_and_nonsense_fits_no_order() {
        for text in ["15000", "15.000,00\u{a0}Kz", "Kz\u{a0}15,000", "15\u{202f}000\u{a0}Kz"] {
            assert_eq!(asked_amount(text), Some(15_000), "{text}");
        }
        for text in ["Kz", "muito", "15.000,50", "15.5", "-15000", "99999999999999999999"] {
            assert_eq!(asked_amount(text), Some(0), "{text}");
        }
        assert_eq!(asked_amount(" "), None);
    }

    #[test]
    fn a_cell_is_never_a_formula() {
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(cell("a; =1"), "a; '=1");
        assert_eq!(cell("a;\"=1;b"), "\"a;\"\"'=1;b\"");
        assert_eq!(cell("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(cell("Ténis"), "Ténis");
    }
}
