//! The mock ATM and the mock wallet, for programs and for people.

use hyper::{Method, StatusCode};
use svc_service::domain::{AttemptState, Instrument, PaymentAttempt, ReferenceNumber};
use svc_service::orders::Choice;

use super::{create, dossier, simulate};
use crate::support::*;

on_both_engines! {
    the_machine_takes_the_right_amount_once,
    the_machine_knows_no_other_reference,
    the_machine_refuses_what_has_ended,
    people_see_the_same_as_a_page,
    the_wallet_approves_or_refuses_a_code,
    other_sites_pay_nothing_here,
}

const HOOK: &str = "http://127.0.0.1:3000/hook";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// An order with a reference that can be paid: entity and number.
async fn issued(service: &TestService, id: &str) -> (ReferenceNumber, String, String) {
    let order = create(service, id, HOOK).await;
    simulate(service, id, "pending").await;
    let attempt = dossier(service, &order).await.attempts.remove(0);
    let Instrument::Reference(Some(bank)) = attempt.instrument else { panic!("{attempt:?}") };
    (order, bank.entity().to_owned(), bank.number().to_owned())
}

/// What the machine says to a program.
async fn types(service: &TestService, entity: &str, number: &str, amount: &str) -> String {
    let form = format!("entity={entity}&reference={number}&amount={amount}");
    let headers = [FORM, ("accept", "application/json")];
    let answer = service.call(Method::POST, "/sandbox/atm", &headers, form).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.json().as_object().unwrap().len(), 1, "{}", answer.text);
    answer.json()["result"].as_str().unwrap().to_owned()
}

async fn the_machine_takes_the_right_amount_once(database: TestDatabase) {
    let service = TestService::start(database).await;
    let (order, entity, number) = issued(&service, "order_1").await;
    for amount in ["", "0", "14999", "15001", "15000.01", "15,0000", "1e4", "-15000"] {
        assert_eq!(types(&service, &entity, &number, amount).await, "wrong_amount", "{amount}");
    }
    assert_eq!(dossier(&service, &order).await.order.status.code(), "PEN");
    assert_eq!(service.count("receipts").await, 0, "a machine checks before money moves");
    let spaced = format!("{}+{}+{}", &number[..3], &number[3..6], &number[6..]);
    assert_eq!(types(&service, &entity, &spaced, "15.000,00").await, "paid");
    let paid = dossier(&service, &order).await;
    assert_eq!((paid.order.status.code(), paid.attempts[0].state), ("CON", AttemptState::Accepted));
    assert_eq!(types(&service, &entity, &number, "15000").await, "already_paid");
    assert_eq!(service.count("exceptions").await, 0);
}

async fn the_machine_knows_no_other_reference(database: TestDatabase) {
    let service = TestService::start(database).await;
    let (order, entity, number) = issued(&service, "order_1").await;
    let mut other = number.clone().into_bytes();
    other[8] = if other[8] == b'9' { b'8' } else { b'9' };
    let other = String::from_utf8(other).unwrap();
    for (entity, number) in [
        (entity.as_str(), other.as_str()),
        ("00348", number.as_str()),
        ("", number.as_str()),
        (entity.as_str(), ""),
        (entity.as_str(), "12345678"),
        (entity.as_str(), "abcdefghi"),
        ("0", "0"),
    ] {
        let said = types(&service, entity, number, "15000").await;
        assert_eq!(said, "invalid_reference", "{entity} {number}");
    }
    assert_eq!(dossier(&service, &order).await.order.status.code(), "PEN");
}

async fn the_machine_refuses_what_has_ended(database: TestDatabase) {
    let service = TestService::start(database).await;
    for (id, end) in [("order_1", "expire"), ("order_2", "cancel")] {
        let (order, entity, number) = issued(&service, id).await;
        simulate(&service, id, end).await;
        assert_eq!(types(&service, &entity, &number, "15000").await, "expired", "{end}");
        assert_eq!(dossier(&service, &order).await.order.status.code(), "CAN", "{end}");
    }
    let (_, entity, number) = issued(&service, "order_3").await;
    super::advance(&service, 1_440 * 60).await;
    assert_eq!(types(&service, &entity, &number, "15000").await, "expired", "by the clock");
    assert_eq!(service.count("receipts").await, 0);
}

async fn people_see_the_same_as_a_page(database: TestDatabase) {
    let service = TestService::start(database).await;
    let (_, entity, number) = issued(&service, "order_1").await;
    let query = format!("?entity={entity}&reference={number}&amount=15000&lang=en");
    let page = service.get(&format!("/sandbox/atm{query}")).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains(&number), "{}", page.text);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none';"), "{policy}");
    let hostile = "/sandbox/atm?reference=%22%3E%3Cscript%3E&lang=%3Cscript%3E";
    assert!(!service.get(hostile).await.text.contains("<script>"));
    let form = format!("entity={entity}&reference={number}&amount=1");
    let wrong = service.call(Method::POST, "/sandbox/atm?lang=en", &[FORM], form.clone()).await;
    assert_eq!(wrong.header("content-type"), Some("text/html; charset=utf-8"));
    let form = form.replace("amount=1", "amount=15000");
    let paid = service.call(Method::POST, "/sandbox/atm?lang=en", &[FORM], form).await;
    assert_ne!(paid.text, wrong.text);
    assert_eq!(service.count("orders where status = 'CON'").await, 1);
}

async fn code(service: &TestService, id: &str) -> (ReferenceNumber, PaymentAttempt) {
    let order = create(service, id, HOOK).await;
    let request = svc_service::domain::Author::service();
    let choice = Choice::Code;
    let mut paid = svc_service::orders::pay(&service.app, &order, &choice, &request).await.unwrap();
    (order, paid.attempts.remove(0))
}

async fn the_wallet_approves_or_refuses_a_code(database: TestDatabase) {
    let service = TestService::start(database).await;
    for (id, decision, state, status) in [
        ("order_1", "approve", AttemptState::Accepted, "CON"),
        ("order_2", "refuse", AttemptState::Rejected, "PEN"),
        ("order_3", "ignore", AttemptState::Issued, "PEN"),
    ] {
        let (order, attempt) = code(&service, id).await;
        let Instrument::Code(Some(wallet)) = &attempt.instrument else { panic!("{attempt:?}") };
        for target in [wallet.link.clone(), format!("/sandbox/wallet?code={}", wallet.code)] {
            let page = service.get(&target).await;
            assert_eq!(page.status, StatusCode::OK, "{target}");
            assert!(page.text.contains("Livro"), "{target}");
        }
        let form = format!("decision={decision}");
        let headers = [FORM];
        let answer = service.call(Method::POST, &wallet.link, &headers, form.clone()).await;
        assert_eq!(answer.status, StatusCode::OK, "{decision}");
        // Once more changes nothing.
        service.call(Method::POST, &wallet.link, &headers, form).await;
        let after = dossier(&service, &order).await;
        assert_eq!((after.attempts[0].state, after.order.status.code()), (state, status));
    }
    let unknown = service.get("/sandbox/wallet?code=ZZZZ-ZZZZ").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(service.count("receipts").await, 2);
    assert_eq!(service.count("exceptions").await, 0);
}

async fn other_sites_pay_nothing_here(database: TestDatabase) {
    let service = TestService::start(database).await;
    let (order, entity, number) = issued(&service, "order_1").await;
    let (_, attempt) = code(&service, "order_2").await;
    let atm = format!("entity={entity}&reference={number}&amount=15000");
    let wallet = format!("/sandbox/wallet/{}", attempt.id.as_str());
    for (target, form) in [("/sandbox/atm", atm.as_str()), (&wallet, "decision=approve")] {
        for foreign in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
            let headers = [FORM, foreign];
            let answer = service.call(Method::POST, target, &headers, form.to_owned()).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{target} {foreign:?}");
        }
        let headers = [("content-type", "text/plain")];
        let answer = service.call(Method::POST, target, &headers, form.to_owned()).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{target}");
    }
    assert_eq!(dossier(&service, &order).await.order.status.code(), "PEN");
    assert_eq!(service.count("receipts").await, 0);
}
