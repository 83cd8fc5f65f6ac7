//! A payer who tries more than one way: what was given out can still be found, and is told apart.

use hyper::StatusCode;
use jiff::SignedDuration;
use svc_service::orders;

use super::{Checkout, attribute, session_of};
use crate::support::*;

on_both_engines! {
    what_was_given_out_is_found_again_whatever_was_tried_since,
    the_shop_is_told_of_a_code_that_can_be_paid,
    an_order_lives_as_long_as_its_code,
    a_code_that_expired_is_told,
    a_bank_that_was_silent_is_not_a_payer_who_was_slow,
    who_cancels_while_money_moves_is_no_longer_asked_to_authorise,
    a_page_that_was_hidden_for_long_still_says_that_it_is_left,
    what_a_page_asked_as_it_was_left_is_no_return,
    a_page_that_could_not_be_shown_keeps_the_order_for_a_minute,
    while_a_push_is_under_way_the_shop_is_handed_no_reference,
    the_shop_is_told_of_what_the_payer_took_last,
    a_code_whose_rail_is_being_asked_is_not_paid_once_more,
    a_page_past_its_deadline_asks_until_the_order_has_ended,
}

/// Presses "pay" and goes where that leads.
async fn pay(checkout: &Checkout, method: &str, more: &str) -> Answer {
    let session = checkout.session().await;
    let answer = checkout.pay(&session, method, more).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    checkout.service.get(answer.header("location").unwrap()).await
}

async fn pass_s(checkout: &Checkout, seconds: i64) {
    let app = &checkout.service.app;
    app.clock.advance(SignedDuration::from_secs(seconds));
    orders::run_due(app).await.unwrap();
}

/// A push that its payer refuses.
async fn refused_push(checkout: &Checkout) {
    pay(checkout, "FPMCXEXPRSS", "&phone=900003000").await;
    pass_s(checkout, 6).await;
    assert_eq!(attribute(&checkout.page("").await, "data-screen"), "refused");
}

async fn what_was_given_out_is_found_again_whatever_was_tried_since(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let reference = pay(&checkout, "FPSOLPGEXT", "").await;
    assert_eq!(attribute(&reference, "data-screen"), "reference");
    let number =
        attribute(&reference, "data-share").split("Referência: ").nth(1).unwrap()[..11].to_owned();
    let code = pay(&checkout, "FPSOLPG", "").await;
    assert_eq!(attribute(&code, "data-screen"), "code");
    let warning = format!("Tem a referência {} por pagar", number.replace(' ', "\u{a0}"));
    assert!(code.text.contains(&warning), "{}", code.text);
    let again = pay(&checkout, "FPSOLPGEXT", "").await;
    assert_eq!(attribute(&again, "data-screen"), "reference");
    assert!(again.text.contains(&number) && !again.text.contains("por pagar"), "{}", again.text);
    refused_push(&checkout).await;
    for (method, screen) in [("FPSOLPGEXT", "reference"), ("FPSOLPG", "code")] {
        let shown = pay(&checkout, method, "").await;
        assert_eq!(attribute(&shown, "data-screen"), screen);
    }
    assert_eq!(checkout.dossier().await.attempts.len(), 3, "nothing was issued twice");
    pass_s(&checkout, 900).await;
    // The code has ended; the reference has not.
    let left = pay(&checkout, "FPSOLPGEXT", "").await;
    assert_eq!(attribute(&left, "data-screen"), "reference");
}

/// What the merchant's callbacks get.
fn told(page: &Answer) -> String {
    attribute(page, "data-payment").replace("&#34;", "\"")
}

async fn the_shop_is_told_of_a_code_that_can_be_paid(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    pay(&checkout, "FPSOLPG", "").await;
    refused_push(&checkout).await;
    let page = checkout.page("").await;
    assert!(told(&page).contains("\"expiresAt\""), "{}", told(&page));
    pass_s(&checkout, 900).await;
    let page = checkout.page("").await;
    assert!(!told(&page).contains("\"expiresAt\""), "{}", told(&page));
}

async fn an_order_lives_as_long_as_its_code(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let short = session_of(&checkout.page("&life=1").await);
    checkout.pay(&short, "FPSOLPGEXT", "").await;
    pay(&checkout, "FPSOLPG", "").await;
    let dossier = checkout.dossier().await;
    let code = dossier.attempts[1].deadline;
    assert!(dossier.attempts[0].deadline < code);
    assert_eq!(dossier.order.expires_at, code);
    // Nor does a shorter reference that comes later end it before.
    let checkout = Checkout { reference: checkout.another_order("order_2").await, ..checkout };
    pay(&checkout, "FPSOLPG", "").await;
    let long = checkout.order().await.expires_at;
    checkout.pay(&session_of(&checkout.page("&life=1").await), "FPSOLPGEXT", "").await;
    let dossier = checkout.dossier().await;
    assert_eq!(dossier.order.expires_at, dossier.attempts[0].deadline);
    assert!(dossier.order.expires_at < long, "the reference's life is the merchant's wish");
}

async fn a_code_that_expired_is_told(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    pay(&checkout, "FPSOLPG", "").await;
    pass_s(&checkout, 901).await;
    let page = checkout.page("").await;
    assert_eq!(attribute(&page, "data-screen"), "refused", "{}", page.text);
    assert!(page.text.contains("<title>O código expirou"), "{}", page.text);
    assert!(!page.text.contains("não autorizado"), "nobody refused it: {}", page.text);
    // One press brings another code.
    let retry = "name=\"method\" value=\"FPSOLPG\"";
    assert!(page.text.contains(retry), "{}", page.text);
    assert_eq!(attribute(&pay(&checkout, "FPSOLPG", "").await, "data-screen"), "code");
    assert_eq!(checkout.dossier().await.attempts.len(), 2);
}

async fn a_bank_that_was_silent_is_not_a_payer_who_was_slow(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    for (phone, seconds, told) in
        [("900001001", 6, "O banco não respondeu a tempo"), ("900000003", 91, "tente de novo")]
    {
        pay(&checkout, "FPMCXEXPRSS", &format!("&phone={phone}")).await;
        pass_s(&checkout, seconds).await;
        let page = checkout.page("").await;
        assert!(page.text.contains(told), "{phone}: {}", page.text);
    }
}

async fn who_cancels_while_money_moves_is_no_longer_asked_to_authorise(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let waiting = pay(&checkout, "FPMCXEXPRSS", "&phone=900000003").await;
    assert!(waiting.text.contains("Abra a app e autorize"), "{}", waiting.text);
    checkout.post("/cancel", &[], &format!("session={}", session_of(&waiting))).await;
    let cancelling = checkout.page("").await;
    assert_eq!(attribute(&cancelling, "data-screen"), "waiting");
    assert!(cancelling.text.contains("A cancelar"), "{}", cancelling.text);
    assert!(!cancelling.text.contains("autorize o pagamento"), "{}", cancelling.text);
    pass_s(&checkout, 91).await;
    let ended = checkout.page("").await;
    assert_eq!(attribute(&ended, "data-screen"), "cancelled");
    assert!(!ended.text.contains("Pediu para cancelar"), "{}", ended.text);
}

/// The last word of the window with this nonce, in the first life of its page.
async fn leave(checkout: &Checkout, nonce: &str, session: &str) -> Answer {
    let target = checkout.at("/left", &format!("&nonce={nonce}"));
    let (headers, form) = ([super::FORM], format!("session={session}&page_life=first"));
    checkout.service.call(hyper::Method::POST, &target, &headers, form).await
}

async fn a_page_that_was_hidden_for_long_still_says_that_it_is_left(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let page = checkout.page("&nonce=one").await;
    pass_s(&checkout, 3_600).await;
    let left = leave(&checkout, "one", &session_of(&page)).await;
    assert_eq!(left.status, StatusCode::NO_CONTENT, "{}", left.text);
    let left = leave(&checkout, "one", "e30.e30").await;
    assert_eq!(left.status, StatusCode::UNAUTHORIZED);
    pass_s(&checkout, 10).await;
    assert_eq!(checkout.order().await.status.code(), "CAN");
}

/// Two connections of a browser know no order between them.
async fn what_a_page_asked_as_it_was_left_is_no_return(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = session_of(&checkout.page("&nonce=one").await);
    let asks = async |life| {
        let (target, headers) = (
            checkout.at("/status", "&nonce=one"),
            [("x-svc-session", &*session), ("x-svc-page-life", life)],
        );
        let answer = checkout.service.call(hyper::Method::GET, &target, &headers, "").await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    };
    let is_left = async || {
        pass_s(&checkout, 4).await;
        checkout.service.get(&checkout.at("/state", "&nonce=one")).await.json()["left"].clone()
    };
    leave(&checkout, "one", &session).await;
    asks("first").await;
    assert_eq!(is_left().await, true);
    // The browser showed it again; what the first life said as it went comes late.
    asks("second").await;
    assert_eq!(is_left().await, false);
    leave(&checkout, "one", &session).await;
    assert_eq!(is_left().await, false);
    // It is loaded again, and closed before its script has asked for anything.
    checkout.page("&nonce=one").await;
    leave(&checkout, "one", &session).await;
    assert_eq!(is_left().await, true);
    asks("first").await;
    pass_s(&checkout, 10).await;
    assert_eq!(checkout.order().await.status.code(), "CAN");
}

async fn a_page_that_could_not_be_shown_keeps_the_order_for_a_minute(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let page = checkout.page("&nonce=one").await;
    leave(&checkout, "one", &session_of(&page)).await;
    pass_s(&checkout, 5).await;
    let service = &checkout.service;
    service.sql("alter table checkout_visits rename to gone").await;
    let unshown = checkout.page("&nonce=two").await;
    assert_eq!(unshown.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(super::leads_to_the_page(&checkout, &unshown), "{}", unshown.text);
    service.sql("alter table gone rename to checkout_visits").await;
    pass_s(&checkout, 59).await;
    assert_eq!(checkout.order().await.status.code(), "PEN");
    pass_s(&checkout, 1).await;
    assert_eq!(checkout.order().await.status.code(), "CAN");
}

async fn while_a_push_is_under_way_the_shop_is_handed_no_reference(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let reference = told(&pay(&checkout, "FPSOLPGEXT", "").await);
    assert!(reference.contains("\"expiresAt\""), "{reference}");
    let waiting = pay(&checkout, "FPMCXEXPRSS", "&phone=900003000").await;
    assert_eq!(attribute(&waiting, "data-screen"), "waiting");
    let waiting = told(&waiting);
    assert!(waiting.contains("\"paymentReference\":\"\""), "{waiting}");
    assert!(!waiting.contains("\"expiresAt\""), "{waiting}");
    assert!(waiting.contains("\"method\":\"FPMCXEXPRSS\""), "{waiting}");
    pass_s(&checkout, 6).await;
    assert_eq!(told(&checkout.page("").await), reference, "refused: it can be paid again");
}

async fn the_shop_is_told_of_what_the_payer_took_last(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    pay(&checkout, "FPSOLPGEXT", "").await;
    let code = told(&pay(&checkout, "FPSOLPG", "").await);
    assert!(code.contains("\"method\":\"FPSOLPG\""), "{code}");
    pass_s(&checkout, 901).await;
    let told = async || told(&checkout.page("").await);
    patiently(async { while !told().await.contains("\"method\":\"FPSOLPGEXT\"") {} }).await;
}

async fn a_code_whose_rail_is_being_asked_is_not_paid_once_more(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    pay(&checkout, "FPSOLPG", "").await;
    // As if another node were asking.
    let taken = "update payment_attempts set due_at_ms = due_at_ms + 60000";
    checkout.service.sql(taken).await;
    checkout.service.app.clock.advance(SignedDuration::from_secs(901));
    let page = checkout.page("").await;
    assert_eq!(attribute(&page, "data-screen"), "confirming");
    assert!(!told(&page).contains("\"expiresAt\""), "{}", told(&page));
    let session = checkout.session().await;
    checkout.pay(&session, "FPMCXEXPRSS", "&phone=900000000").await;
    assert_eq!(checkout.dossier().await.attempts.len(), 1, "nothing else was begun");
    pass_s(&checkout, 60).await;
    let shown = async || attribute(&checkout.page("").await, "data-screen");
    patiently(async { while shown().await != "refused" {} }).await;
}

async fn a_page_past_its_deadline_asks_until_the_order_has_ended(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    pay(&checkout, "FPSOLPGEXT", "").await;
    let deadline = checkout.order().await.expires_at;
    let app = &checkout.service.app;
    app.clock.advance(app.clock.now().duration_until(deadline));
    orders::run_due(app).await.unwrap();
    let expired = checkout.page("").await;
    assert_eq!(attribute(&expired, "data-screen"), "expired");
    assert!(!attribute(&expired, "data-status-url").is_empty(), "money may be on its way");
    pass_s(&checkout, 6).await;
    assert_eq!(checkout.order().await.status.code(), "CAN");
    let ended = checkout.page("").await;
    assert_eq!(attribute(&ended, "data-status-url"), "", "nothing more can come");
    assert!(expired.text.contains("guarde o talão e aguarde"), "{}", expired.text);
    assert!(ended.text.contains("o dinheiro será devolvido"), "{}", ended.text);
    let versions = [&expired, &ended].map(|page| attribute(page, "data-version"));
    assert_ne!(versions[0], versions[1], "or the page would ask for ever");
}
