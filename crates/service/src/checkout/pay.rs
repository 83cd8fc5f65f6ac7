//! POST /checkout/{referenceNumber}/pay: the payer has chosen. Works as a plain form.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::SignedDuration;

use super::notice;
use super::session::Session;
use super::view::{Typed, render};
use super::visit::Visit;
use crate::app::App;
use crate::domain::{Author, PaymentMethod, PhoneNumber};
use crate::http::{ApiError, Pairs, is_foreign, read_form};
use crate::orders::{self, Choice, PayError};

pub(super) async fn pay(State(app): State<App>, visit: Visit, body: Body) -> Response {
    let form = match Form::read(&app, &visit, body).await {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let choice = match choose(&form) {
        Ok(choice) => choice,
        Err(Unfit::Phone) => {
            let typed = Typed { phone: form.value("phone"), phone_error: true, stale: false };
            return render(&app, &visit, StatusCode::UNPROCESSABLE_ENTITY, &typed);
        }
        Err(Unfit::Method) => {
            return render(&app, &visit, StatusCode::UNPROCESSABLE_ENTITY, &Typed::default());
        }
    };
    let by = Author::payer(&visit.exchange.request_id);
    let reference = &visit.dossier.order.reference_number;
    match orders::pay(&app, reference, &choice, &by).await {
        Ok(_) => see_page(&visit, choice.method().code()),
        Err(PayError::Refused(_)) => anew(&app, visit, StatusCode::CONFLICT).await,
        Err(PayError::NotOffered) => {
            render(&app, &visit, StatusCode::UNPROCESSABLE_ENTITY, &Typed::default())
        }
        Err(PayError::TooOften(limited)) => notice::too_many(&visit.asker(), limited),
        Err(PayError::Store(fault)) => notice::failed(&visit.asker(), &fault.into()),
    }
}

/// A form of our own page, with a session of this order.
pub(super) struct Form {
    pub session: Session,
    pairs: Pairs,
}

impl Form {
    pub(super) async fn read(app: &App, visit: &Visit, body: Body) -> Result<Self, Box<Response>> {
        let form = Self::read_of_any_age(app, visit, body).await?;
        if form.session.has_ended(app.clock.now()) {
            return Err(stale(app, visit, form.value("phone")));
        }
        Ok(form)
    }

    /// A page that was hidden for an hour still says that it is left.
    pub(super) async fn read_of_any_age(
        app: &App,
        visit: &Visit,
        body: Body,
    ) -> Result<Self, Box<Response>> {
        let pairs = read_form(&visit.headers, body)
            .await
            .map_err(|fault| Box::new(fault.into_response()))?;
        if is_foreign(app, &visit.headers) {
            return Err(Box::new(ApiError::ForeignOrigin.into_response()));
        }
        let reference = &visit.dossier.order.reference_number;
        if let Err(limited) = app.limits.checkout_poll(reference) {
            return Err(Box::new(notice::too_many(&visit.asker(), limited)));
        }
        match Session::of(&app.keys, pairs.value("session"), reference) {
            Some(session) => Ok(Self { session, pairs }),
            None => Err(stale(app, visit, pairs.value("phone"))),
        }
    }

    pub(super) fn value(&self, name: &str) -> &str {
        self.pairs.value(name)
    }
}

/// The page that comes back has a new session: the payer presses once more.
fn stale(app: &App, visit: &Visit, phone: &str) -> Box<Response> {
    let typed = Typed { phone, phone_error: false, stale: true };
    Box::new(render(app, visit, StatusCode::UNAUTHORIZED, &typed))
}

enum Unfit {
    Method,
    Phone,
}

fn choose(form: &Form) -> Result<Choice, Unfit> {
    let method = PaymentMethod::from_code(form.value("method")).ok_or(Unfit::Method)?;
    if !form.session.methods.contains(&method) {
        return Err(Unfit::Method);
    }
    Ok(match method {
        PaymentMethod::Direct => Choice::Code,
        PaymentMethod::BankReference => Choice::Reference {
            life: SignedDuration::from_mins(form.session.reference_life_minutes),
        },
        PaymentMethod::ExpressWallet => {
            Choice::Push(PhoneNumber::parse(form.value("phone")).map_err(|_| Unfit::Phone)?)
        }
    })
}

/// A reload of what comes next must not send the form again.
pub(super) fn see_page(visit: &Visit, view: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(target) = HeaderValue::from_str(&visit.at("", view)) {
        response.headers_mut().insert(header::LOCATION, target);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The page as the order is now, which is not as the payer saw it.
pub(super) async fn anew(app: &App, mut visit: Visit, status: StatusCode) -> Response {
    match app.store.dossier(&visit.dossier.order.reference_number).await {
        Ok(Some(dossier)) => {
            visit.dossier = dossier;
            render(app, &visit, status, &Typed::default())
        }
        Ok(None) => notice::not_found(&visit.headers, visit.options.language),
        Err(fault) => notice::failed(&visit.asker(), &fault.into()),
    }
}
