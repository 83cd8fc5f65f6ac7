//! A webhook secret is replaced while events flow: no event is refused, and none is signed too late.

use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::Response;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use svc_service::app::App;
use svc_service::credentials::{self, Takeover};
use svc_service::domain::{Author, sign, sign_standard};
use svc_service::store::{EventState, PendingEvent, StoreError};

use super::crowd::{Stall, pay_many, stall};
use crate::support::{
    Dice, Received, Receiver, Shop, TestDatabase, TestDelivery, on_both_engines, waiting_events,
};

on_both_engines! {
    a_hundred_rotations_lose_no_event_of_a_strict_merchant,
    the_content_token_changes_hands_at_the_switch_and_the_old_secret_goes_with_the_window,
    an_event_queued_before_a_rotation_is_signed_with_the_secret_of_its_attempt,
    a_second_rotation_before_the_switch_keeps_the_secret_that_merchants_know,
    a_switch_after_the_window_is_refused,
    without_a_window_the_new_secret_takes_over_at_once,
    the_published_verifier_accepts_either_secret_in_the_window,
}

fn takeover(switch_after_s: i64, overlap_s: i64) -> Takeover {
    Takeover {
        switch_after: SignedDuration::from_secs(switch_after_s),
        overlap: SignedDuration::from_secs(overlap_s),
    }
}

/// The new secret, known to the dispatcher as it would be a second later.
async fn rotate(delivery: &TestDelivery, shop: &Shop, takeover: Takeover) -> String {
    let uuid = shop.issued.application.publishable_key.application_uuid();
    let secret = credentials::rotate_webhook_secret(
        &delivery.app,
        uuid,
        takeover,
        &Author::command_line(None),
    )
    .await
    .unwrap();
    delivery.app.directory.refresh(&delivery.app.store).await.unwrap();
    secret.expose_secret().to_owned()
}

/// The next event of the shop as its merchant sees it.
async fn next(delivery: &mut TestDelivery, shop: &Shop, receiver: &Receiver) -> Received {
    let count = receiver.requests().len();
    delivery.paid_order(shop, &format!("order_{count}")).await;
    delivery.drain().await;
    let mut requests = receiver.requests();
    assert_eq!(requests.len(), count + 1);
    requests.remove(count)
}

/// Which of these secrets signed the spec's header, by number.
fn token_of(request: &Received, secrets: &[&str]) -> Option<usize> {
    let token = request.header("x-svc-content-token");
    secrets.iter().position(|secret| sign(secret, &request.body) == token)
}

/// Which of these secrets signed each entry of the Standard Webhooks header.
fn signatures_of(request: &Received, secrets: &[&str]) -> Vec<Option<usize>> {
    let id = request.header("webhook-id");
    let at = request.header("webhook-timestamp").parse().unwrap();
    let at = Timestamp::from_second(at).unwrap();
    let made_with = |entry: &str| {
        secrets.iter().position(|secret| {
            sign_standard(secret, id, at, &request.body).is_some_and(|own| own == entry)
        })
    };
    request.header("webhook-signature").split(' ').map(made_with).collect()
}

/// What a merchant has been told, and until when each secret counts.
#[derive(Default)]
struct Keyring(Mutex<Vec<(String, Timestamp)>>);

impl Keyring {
    /// The newest lasts; what was the newest until now lasts as long as the window.
    fn learn(&self, secret: String, window_ends: Timestamp) {
        let mut known = self.0.lock().unwrap();
        if let Some((_, until)) = known.last_mut() {
            *until = window_ends;
        }
        known.push((secret, Timestamp::MAX));
    }

    /// One good token, one good signature, and nothing made with a secret that has ended.
    fn accepts(&self, request: &Received, now: Timestamp) -> bool {
        let known = self.0.lock().unwrap();
        let (good, ended): (Vec<_>, Vec<_>) = known.iter().partition(|(_, until)| now < *until);
        let good: Vec<_> = good.iter().map(|(secret, _)| secret.as_str()).collect();
        let ended: Vec<_> = ended.iter().map(|(secret, _)| secret.as_str()).collect();
        token_of(request, &good).is_some()
            && signatures_of(request, &good).iter().any(Option::is_some)
            && signatures_of(request, &ended).iter().all(Option::is_none)
    }
}

async fn a_hundred_rotations_lose_no_event_of_a_strict_merchant(database: TestDatabase) {
    const ROTATIONS: usize = 100;
    let mut delivery = TestDelivery::start(database).await;
    let app = delivery.app.clone();
    let mut dice = Dice::of_this_run(&app);
    let (keyring, rejected) = (Arc::new(Keyring::default()), Arc::new(Mutex::new(Vec::new())));
    let receiver = {
        let (app, keyring) = (app.clone(), Arc::clone(&keyring));
        let (dice, rejected) = (dice.clone(), Arc::clone(&rejected));
        Receiver::start(move |request| {
            let name = format!("{}{}", request.order(), request.header("x-svc-delivery-attempt"));
            let status = if !keyring.accepts(request, app.clock.now()) {
                rejected.lock().unwrap().push(request.clone());
                401
            } else if dice.named(&name).chance(20) {
                503
            } else {
                200
            };
            Response::builder().status(status).body(Full::default()).unwrap()
        })
        .await
    };
    let stall = stall(&app, &receiver.url(), PendingEvent::Never).await;
    let first = app.keys.open(&stall.application.webhook_secret).unwrap();
    keyring.learn(first.expose_secret().to_owned(), Timestamp::MAX);
    for rotation in 0..ROTATIONS {
        // Without an overlap (a secret that leaked) what is being signed at that moment is lost to a strict
        // merchant until its next attempt.
        let (switch_s, more_s) = (dice.below(60).cast_signed(), 5 + dice.below(55).cast_signed());
        let takeover = takeover(switch_s, switch_s + more_s);
        // Some events before, some while the secret changes.
        pay_many(&app, &stall, &format!("before_{rotation}"), 4).await;
        let name = format!("while_{rotation}");
        let paying = pay_many(&app, &stall, &name, 4);
        let rotating = rotate_and_tell(&app, &stall, takeover, &keyring);
        let ((), untold, ()) = tokio::join!(paying, rotating, delivery.drain());
        if let Some(secret) = untold {
            delivery.drain().await;
            keyring.learn(secret, app.clock.now() + takeover.overlap);
        }
        let switch_at = app.clock.now() + takeover.switch_after;
        let window_ends = app.clock.now() + takeover.overlap;
        let moments = [
            (switch_at - SignedDuration::from_millis(1), "waiting"),
            (switch_at, "switched"),
            (window_ends, "over"),
        ];
        for (moment, name) in moments {
            // Now and then the next rotation comes before the window has ended.
            if name == "over" && dice.chance(30) {
                continue;
            }
            delivery.advance_to(moment);
            pay_many(&app, &stall, &format!("{name}_{rotation}"), 4).await;
            delivery.drain().await;
        }
    }
    while delivery.step().await {}
    let rejected = rejected.lock().unwrap().len();
    assert_eq!(rejected, 0, "of {} requests", receiver.requests().len());
    assert!(receiver.requests().len() > ROTATIONS * 16);
    assert_eq!(waiting_events(&app.store).await, 0);
}

/// The service may know the new secret before the merchant does, unless it is to sign with it: then
/// the secret is given back to be told later.
async fn rotate_and_tell(
    app: &App,
    stall: &Stall,
    takeover: Takeover,
    keyring: &Keyring,
) -> Option<String> {
    let uuid = &stall.application.uuid;
    let secret =
        credentials::rotate_webhook_secret(app, uuid, takeover, &Author::command_line(None))
            .await
            .unwrap();
    let secret = secret.expose_secret().to_owned();
    let at_once = takeover.switch_after.is_zero();
    if at_once {
        keyring.learn(secret.clone(), app.clock.now() + takeover.overlap);
    }
    app.directory.refresh(&app.store).await.unwrap();
    (!at_once).then_some(secret)
}

async fn the_content_token_changes_hands_at_the_switch_and_the_old_secret_goes_with_the_window(
    database: TestDatabase,
) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let (old, new) = (Some(0), Some(1));
    let alone = next(&mut delivery, &shop, &receiver).await;
    assert_eq!(signatures_of(&alone, &[shop.webhook_secret()]), [old]);
    let secret = rotate(&delivery, &shop, takeover(60, 100)).await;
    let secrets = [shop.webhook_secret(), secret.as_str()];
    let start = delivery.app.clock.now();
    for (ms, token, signatures) in [
        (0, old, vec![new, old]),
        (59_999, old, vec![new, old]),
        (60_000, new, vec![new, old]),
        (99_999, new, vec![new, old]),
        (100_000, new, vec![new]),
        (900_000, new, vec![new]),
    ] {
        delivery.advance_to(start + SignedDuration::from_millis(ms));
        let request = next(&mut delivery, &shop, &receiver).await;
        assert_eq!(token_of(&request, &secrets), token, "after {ms} ms");
        assert_eq!(signatures_of(&request, &secrets), signatures, "after {ms} ms");
        assert_eq!(request.header("x-svc-content-token").len(), 64, "there is room for one only");
    }
}

async fn an_event_queued_before_a_rotation_is_signed_with_the_secret_of_its_attempt(
    database: TestDatabase,
) {
    let receiver = Receiver::start(|request| {
        let status = if request.header("x-svc-delivery-attempt") == "4" { 200 } else { 503 };
        Response::builder().status(status).body(Full::default()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let order = delivery.paid_order(&shop, "order_1").await;
    delivery.drain().await;
    // Attempts follow after 5, 30 and 120 s, give or take a fifth.
    let secret = rotate(&delivery, &shop, takeover(20, 60)).await;
    while delivery.step().await {}
    let secrets = [shop.webhook_secret(), secret.as_str()];
    let requests = receiver.requests();
    let tokens: Vec<_> = requests.iter().map(|r| token_of(r, &secrets)).collect();
    assert_eq!(tokens, [Some(0), Some(0), Some(1), Some(1)]);
    let signatures: Vec<_> = requests.iter().map(|r| signatures_of(r, &secrets)).collect();
    let both = vec![Some(1), Some(0)];
    assert_eq!(signatures, [vec![Some(0)], both.clone(), both, vec![Some(1)]]);
    assert!(requests.iter().all(|request| request.body == requests[0].body));
    assert_eq!(delivery.event(&order).await.state, EventState::Delivered);
}

async fn a_second_rotation_before_the_switch_keeps_the_secret_that_merchants_know(
    database: TestDatabase,
) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let lost = rotate(&delivery, &shop, takeover(60, 100)).await;
    delivery.advance_s(10);
    let last = rotate(&delivery, &shop, takeover(60, 100)).await;
    let secrets = [shop.webhook_secret(), lost.as_str(), last.as_str()];
    for (advance_s, token, signatures) in [
        (0, Some(0), vec![Some(2), Some(0)]),
        (59, Some(0), vec![Some(2), Some(0)]),
        (1, Some(2), vec![Some(2), Some(0)]),
        (40, Some(2), vec![Some(2)]),
    ] {
        delivery.advance_s(advance_s);
        let request = next(&mut delivery, &shop, &receiver).await;
        assert_eq!(token_of(&request, &secrets), token);
        assert_eq!(signatures_of(&request, &secrets), signatures);
    }
}

async fn a_switch_after_the_window_is_refused(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let uuid = shop.issued.application.publishable_key.application_uuid();
    let refused = credentials::rotate_webhook_secret(
        &delivery.app,
        uuid,
        takeover(61, 60),
        &Author::command_line(None),
    )
    .await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    delivery.app.directory.refresh(&delivery.app.store).await.unwrap();
    let request = next(&mut delivery, &shop, &receiver).await;
    assert_eq!(signatures_of(&request, &[shop.webhook_secret()]), [Some(0)], "nothing changed");
    rotate(&delivery, &shop, takeover(60, 60)).await;
}

async fn without_a_window_the_new_secret_takes_over_at_once(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let secret = rotate(&delivery, &shop, takeover(0, 0)).await;
    let request = next(&mut delivery, &shop, &receiver).await;
    let secrets = [shop.webhook_secret(), secret.as_str()];
    assert_eq!(token_of(&request, &secrets), Some(1));
    assert_eq!(signatures_of(&request, &secrets), [Some(1)]);
}

async fn the_published_verifier_accepts_either_secret_in_the_window(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start_on_time(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let verifies = |secret: &str, request: &Received| {
        let verifier = standardwebhooks::Webhook::new(secret).unwrap();
        verifier.verify(&request.body, &request.headers).is_ok()
    };
    let second = rotate(&delivery, &shop, takeover(1_800, 3_600)).await;
    let request = next(&mut delivery, &shop, &receiver).await;
    assert!(verifies(shop.webhook_secret(), &request));
    assert!(verifies(&second, &request));
    // A leaked secret is cut off at once.
    let third = rotate(&delivery, &shop, takeover(0, 0)).await;
    let request = next(&mut delivery, &shop, &receiver).await;
    assert!(verifies(&third, &request));
    assert!(!verifies(&second, &request) && !verifies(shop.webhook_secret(), &request));
}
