//! The console: for operators who must see and repair, and merchants' developers who must find out why.
//!
//! Pages are made on the server and work without a script; htmx brings fresh parts when there is news.

mod access;
mod account;
mod assets;
mod clock;
mod developers;
mod exceptions;
mod figures;
mod frame;
mod history;
mod home;
mod links;
mod live;
mod order;
mod orders;
mod password;
mod people;
mod sign_in;
mod texts;
mod totp;
mod webhooks;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use crate::app::App;
use crate::http::Language;
use access::{Id, set_cookie};
use frame::{LANGUAGE_COOKIE, Refusal, referer_path, refusals};

pub use figures::count as count_figures;
pub(crate) use figures::keep_figures;
pub use people::{Invited, entry, invite, invite_again};

pub(crate) fn routes(app: &App) -> Router<App> {
    Router::new()
        .route("/console", get(home::home))
        .route("/console/live", get(live::live))
        .route("/console/search", get(orders::search))
        .route("/console/orders", get(orders::orders))
        .route("/console/orders.csv", get(orders::export))
        .route("/console/orders/{reference}", get(order::order))
        .route("/console/orders/{reference}/cancel", post(order::cancel))
        .route("/console/orders/{reference}/simulate", post(order::simulate))
        .route("/console/clock", post(clock::advance))
        .route("/console/webhooks", get(webhooks::webhooks))
        .route("/console/webhooks/recover", post(webhooks::recover))
        .route("/console/webhooks/{event}", get(webhooks::webhook))
        .route("/console/webhooks/{event}/resend", post(webhooks::resend))
        .route("/console/exceptions", get(exceptions::exceptions))
        .route("/console/exceptions/{id}/resolve", post(exceptions::resolve))
        .route("/console/developers", get(developers::developers))
        .route("/console/partners/{client}/rotate", post(developers::rotate_client_secret))
        .route("/console/partners/{client}/revoke", post(developers::revoke_previous))
        .route("/console/applications/{uuid}/rotate", post(developers::rotate_webhook_secret))
        .route("/console/requests", get(developers::requests))
        .route("/console/requests/{id}", get(developers::request))
        .route("/console/audit", get(history::history))
        .route("/console/people", get(people::people).post(people::add))
        .route("/console/people/{id}", post(people::change))
        .route("/console/account", get(account::account))
        .route("/console/account/password", post(account::change_password))
        .route("/console/account/totp", post(account::change_totp))
        .route("/console/sign-in", get(sign_in::sign_in).post(sign_in::check))
        .route("/console/sign-out", post(sign_in::sign_out))
        .route("/console/welcome/{token}", get(sign_in::invitation).post(sign_in::welcome))
        .route("/console/enter/{token}", get(sign_in::entry))
        .route("/console/language/{code}", get(choose_language))
        .route("/console/{*anything}", get(async || Refusal::NotFound))
        .layer(from_fn_with_state(app.clone(), refusals))
        // Files need no session and may be kept: they are outside the layer.
        .route("/console/assets/{tag}/{name}", get(assets::asset))
}

/// GET /console/language/{code}: kept by the browser, and back to where the reader was.
async fn choose_language(Id(code): Id, headers: HeaderMap) -> Response {
    let Some(language) = Language::from_code(&code) else {
        return Refusal::NotFound.into_response();
    };
    const ONE_YEAR_S: u32 = 31_536_000;
    let chosen = format!("{LANGUAGE_COOKIE}={}; Max-Age={ONE_YEAR_S}", language.code());
    let cookie = [(header::SET_COOKIE, set_cookie(&chosen))];
    (cookie, Redirect::to(&referer_path(&headers))).into_response()
}
