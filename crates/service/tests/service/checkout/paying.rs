//! Paying and cancelling by the page's forms (H5–H14, H19).

use hyper::{Method, StatusCode};
use jiff::SignedDuration;
use svc_service::domain::{
    About, Actor, AttemptState, Author, CancelReason, Notice, TRIES_PER_METHOD_MAX, Word,
};
use svc_service::orders::{self};

use super::{Checkout, attribute, session_of};
use crate::support::*;

on_both_engines! {
    h5_nobody_pays_without_a_session_and_the_page_that_comes_back_has_one,
    h6_a_session_of_another_order_opens_nothing,
    a_session_ends_after_a_quarter_of_an_hour,
    h7_a_page_cannot_allow_itself_more_than_its_session,
    h8_an_unknown_method_is_refused,
    h10_two_clicks_at_once_are_one_attempt,
    h11_a_paid_order_is_not_paid_again,
    h12_an_order_that_ended_is_not_paid,
    h13_a_paid_order_is_not_cancelled,
    h14_an_address_cancels_nothing,
    h19_what_is_no_phone_number_is_refused_and_shown_again,
    all_three_methods_work_as_plain_forms,
    a_payer_who_cancels_while_money_moves_is_told_to_wait,
    a_method_that_was_tried_too_often_is_no_longer_offered,
    the_shop_is_told_the_method_that_paid,
}

async fn h5_nobody_pays_without_a_session_and_the_page_that_comes_back_has_one(
    database: TestDatabase,
) {
    let checkout = Checkout::start(database).await;
    let before = checkout.snapshot().await;
    let session = checkout.session().await;
    let mut cut = session.clone();
    cut.pop();
    for token in ["", "x", "a.b", cut.as_str()] {
        for verb in ["/pay", "/cancel"] {
            let form = format!("session={token}&method=FPSOLPG");
            let answer = checkout.post(verb, &[], &form).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{verb} {token}");
        }
    }
    let answer = checkout.post("/pay", &[], "method=FPSOLPG").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(checkout.snapshot().await, before);
    let again = checkout.pay(&session_of(&answer), "FPSOLPG", "").await;
    assert_eq!(again.status, StatusCode::SEE_OTHER, "the payer presses once more");
}

async fn h6_a_session_of_another_order_opens_nothing(database: TestDatabase) {
    let mut checkout = Checkout::start(database).await;
    let foreign = checkout.session().await;
    checkout.reference = checkout.another_order("order_2").await;
    let before = checkout.snapshot().await;
    assert_eq!(checkout.pay(&foreign, "FPSOLPG", "").await.status, StatusCode::UNAUTHORIZED);
    let cancel = checkout.post("/cancel", &[], &format!("session={foreign}")).await;
    assert_eq!(cancel.status, StatusCode::UNAUTHORIZED);
    assert_eq!(checkout.snapshot().await, before);
}

async fn a_session_ends_after_a_quarter_of_an_hour(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    checkout.service.app.clock.advance(SignedDuration::from_mins(14));
    assert_eq!(checkout.status(&session).await.status, StatusCode::OK);
    checkout.service.app.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(checkout.status(&session).await.status, StatusCode::UNAUTHORIZED);
    let before = checkout.snapshot().await;
    let late = checkout.pay(&session, "FPSOLPG", "").await;
    assert_eq!(late.status, StatusCode::UNAUTHORIZED);
    assert_eq!(checkout.snapshot().await, before);
    let fresh = checkout.pay(&session_of(&late), "FPSOLPG", "").await;
    assert_eq!(fresh.status, StatusCode::SEE_OTHER);
}

async fn h7_a_page_cannot_allow_itself_more_than_its_session(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = session_of(&checkout.page("&methods=FPSOLPGEXT").await);
    let before = checkout.snapshot().await;
    let refused = checkout.pay(&session, "FPMCXEXPRSS", "&phone=900000000").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(checkout.snapshot().await, before);
    let allowed = checkout.pay(&session, "FPSOLPGEXT", "").await;
    assert_eq!(allowed.status, StatusCode::SEE_OTHER);
}

async fn h8_an_unknown_method_is_refused(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let before = checkout.snapshot().await;
    for method in ["", "fpsolpg", "FPSOLPG%00", "VISA", "FPSOLPG,FPSOLPGEXT", "%3Cb%3E"] {
        let answer = checkout.pay(&session, method, "").await;
        let refused = [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::BAD_REQUEST];
        assert!(refused.contains(&answer.status), "{method}: {}", answer.status);
    }
    assert_eq!(checkout.snapshot().await, before);
}

async fn h10_two_clicks_at_once_are_one_attempt(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let click = || checkout.pay(&session, "FPMCXEXPRSS", "&phone=900000003");
    let (one, two, three) = tokio::join!(click(), click(), click());
    for answer in [&one, &two, &three] {
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        assert_eq!(answer.header("location"), one.header("location"));
    }
    assert_eq!(checkout.service.count("payment_attempts").await, 1);
    assert_eq!(checkout.service.count("outbox").await, 1, "PEN is told once");
}

async fn h11_a_paid_order_is_not_paid_again(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let order = checkout.order().await;
    orders::settle(&checkout.service.app, payment_of(&order), "").await.unwrap();
    let before = checkout.snapshot().await;
    for (method, more) in [("FPSOLPG", ""), ("FPSOLPGEXT", ""), ("FPMCXEXPRSS", "&phone=900000000")]
    {
        let answer = checkout.pay(&session, method, more).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{method}");
        assert!(answer.text.contains("data-screen=\"paid\""), "{method}: as it is now");
    }
    assert_eq!(checkout.snapshot().await, before);
}

async fn h12_an_order_that_ended_is_not_paid(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    // No longer offered, and not cancelled yet.
    checkout.service.sql("update orders set closing_at_ms = 1").await;
    let before = checkout.snapshot().await;
    let answer = checkout.pay(&session, "FPSOLPG", "").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.text.contains("data-screen=\"expired\""), "{}", answer.text);
    assert_eq!(checkout.snapshot().await, before);
    checkout.service.sql("update orders set closing_at_ms = null").await;
    let app = &checkout.service.app;
    let reference = checkout.order().await.reference_number;
    let payer = Author { actor: Actor::Payer, request_id: String::new() };
    orders::cancel(app, &reference, CancelReason::Payer, &payer).await.unwrap();
    let before = checkout.snapshot().await;
    let answer = checkout.pay(&session, "FPSOLPG", "").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.text.contains("data-screen=\"cancelled\""), "{}", answer.text);
    assert_eq!(checkout.snapshot().await, before);
}

async fn h13_a_paid_order_is_not_cancelled(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let order = checkout.order().await;
    orders::settle(&checkout.service.app, payment_of(&order), "").await.unwrap();
    let before = checkout.snapshot().await;
    let answer = checkout.post("/cancel", &[], &format!("session={session}")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.text.contains("data-screen=\"paid\""), "{}", answer.text);
    assert_eq!(checkout.snapshot().await, before);
}

async fn h14_an_address_cancels_nothing(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let before = checkout.snapshot().await;
    for verb in ["/cancel", "/pay"] {
        let target = checkout.at(verb, &format!("&session={session}&method=FPSOLPG"));
        let answer = checkout.service.get(&target).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{verb}");
    }
    assert_eq!(checkout.snapshot().await, before);
    let cancelled = checkout.post("/cancel", &[], &format!("session={session}")).await;
    assert_eq!(cancelled.status, StatusCode::SEE_OTHER);
    assert_eq!(checkout.order().await.status.code(), "CAN");
    let again = checkout.post("/cancel", &[], &format!("session={session}")).await;
    assert_eq!(again.status, StatusCode::SEE_OTHER, "whoever cancels twice is shown the same");
}

async fn h19_what_is_no_phone_number_is_refused_and_shown_again(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let before = checkout.snapshot().await;
    for phone in [
        "",
        "9",
        "%2B24492345678",
        "%2B2449234567890",
        "%2B351923456789",
        "823456789",
        "92345678a",
        "%D9%A9%D9%A2%D9%A3%D9%A4%D9%A5%D9%A6%D9%A7%D9%A8%D9%A9",
        "%E2%80%AE923456789",
        "923456789%3B",
    ] {
        let answer = checkout.pay(&session, "FPMCXEXPRSS", &format!("&phone={phone}")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{phone}");
        assert!(answer.text.contains("data-screen=\"phone\""), "{phone}");
        assert!(answer.text.contains("aria-invalid=\"true\""), "{phone}");
    }
    let without = checkout.pay(&session, "FPMCXEXPRSS", "").await;
    assert_eq!(without.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(checkout.snapshot().await, before);
    let phone = "&phone=%2B244+923-456-789";
    let right = checkout.pay(&session, "FPMCXEXPRSS", phone).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER);
}

async fn all_three_methods_work_as_plain_forms(database: TestDatabase) {
    let mut checkout = Checkout::start(database).await;
    for (method, screen, state) in [
        ("FPMCXEXPRSS", "waiting", AttemptState::AwaitingPayer),
        ("FPSOLPGEXT", "reference", AttemptState::Issued),
        ("FPSOLPG", "code", AttemptState::Issued),
    ] {
        checkout.reference = checkout.another_order(&format!("order_{method}")).await;
        let session = session_of(&checkout.page("&lang=en&life=60").await);
        let answer = checkout.pay(&session, method, "&phone=900000003").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{method}");
        let next = checkout.service.get(answer.header("location").unwrap()).await;
        assert!(next.text.contains(&format!("data-screen=\"{screen}\"")), "{}", next.text);
        assert!(!next.text.contains("900000003"), "the number is shown masked");
        let attempt = checkout.dossier().await.attempts.remove(0);
        assert_eq!(attempt.state, state, "{method}");
        if screen == "reference" {
            let life = attempt.deadline.duration_since(attempt.created_at);
            assert_eq!(life, SignedDuration::from_mins(60), "as the merchant asked");
        }
    }
}

async fn a_payer_who_cancels_while_money_moves_is_told_to_wait(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    checkout.pay(&session, "FPMCXEXPRSS", "&phone=900000003").await;
    let form = format!("session={session}");
    let answer = checkout.post("/cancel", &[], &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    let dossier = checkout.dossier().await;
    assert_eq!(dossier.order.status.code(), "PEN");
    assert_eq!(dossier.cancel_requested, Some(CancelReason::Payer));
    assert!(checkout.page("").await.text.contains("data-screen=\"waiting\""));
    assert!(checkout.status(&session).await.json()["version"].as_str().unwrap().contains("cancel"));
}

async fn a_method_that_was_tried_too_often_is_no_longer_offered(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let app = &checkout.service.app;
    for _ in 0..TRIES_PER_METHOD_MAX {
        let phone = checkout.page("&view=phone").await;
        assert!(phone.text.contains("data-screen=\"phone\""));
        checkout.pay(&session_of(&phone), "FPMCXEXPRSS", "&phone=900003000").await;
        app.clock.advance(SignedDuration::from_secs(6));
        orders::run_due(app).await.unwrap();
    }
    let refused = checkout.page("").await;
    assert!(refused.text.contains("data-screen=\"refused\""), "{}", refused.text);
    assert!(refused.text.contains("Não lhe foi cobrado nada."), "nobody wonders");
    let told = "Já tentou 5 vezes com Multicaixa Express. Escolha outro método";
    assert!(refused.text.contains(told), "{}", refused.text);
    assert!(!refused.text.contains("view=phone"), "trying again leads nowhere");
    assert!(refused.text.contains("view=choose"), "another method does");
    for view in ["phone", "choose"] {
        let page = checkout.page(&format!("&view={view}")).await;
        assert!(page.text.contains("data-screen=\"choose\""), "{view}");
        assert!(
            !page.text.contains("class=\"method\" href="),
            "no way to the phone's screen: {view}"
        );
        assert!(page.text.contains("FPSOLPGEXT"), "{view}");
        let (session, shown) = (session_of(&page), attribute(&page, "data-version"));
        let target = checkout.at("/status", &format!("&view={view}"));
        let headers = [("x-svc-session", session.as_str())];
        let status = checkout.service.call(Method::GET, &target, &headers, "").await;
        assert_eq!(status.json()["version"], shown, "{view}");
    }
}

async fn the_shop_is_told_the_method_that_paid(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    checkout.pay(&session, "FPSOLPGEXT", "").await;
    checkout.pay(&session, "FPSOLPG", "").await;
    let dossier = checkout.dossier().await;
    let notice = Notice {
        rail: dossier.attempts[0].rail.clone(),
        rail_payment_id: "p1".into(),
        word: Word::Paid(dossier.order.terms.amount.into()),
        about: About::Attempt(dossier.attempts[0].id.clone()),
        raw: Vec::new(),
    };
    orders::settle(&checkout.service.app, notice, "").await.unwrap();
    let payment = attribute(&checkout.page("").await, "data-payment");
    assert!(payment.contains("CON") && payment.contains("FPSOLPGEXT"), "{payment}");
}
