//! GET /api/svc/order/:externalTransactionId/status: heals what a lost webhook left behind.

use crate::support::{TestShop, event};

fn asked(shop: &TestShop, id: &str) -> (u16, serde_json::Value) {
    let answer = shop.call(&format!("GET /api/svc/order/{id}/status"), &[], b"");
    (answer.status, answer.json())
}

#[test]
fn a_stale_order_takes_the_same_way_as_by_its_webhook() {
    let shop = TestShop::open();
    for (state, stock) in [("CON", 499), ("CAN", 499)] {
        let id = shop.order();
        assert_eq!(asked(&shop, &id).1["status"], "PEN");
        shop.service.states.lock().unwrap().insert(id.clone(), state);
        let (status, order) = asked(&shop, &id);
        assert_eq!((status, &order["status"]), (200, &state.into()));
        assert_eq!((&order["referenceNumber"], &order["amount"]), (&"REF1".into(), &15_000.into()));
        assert_eq!(shop.stock(), stock);
        // The webhook that comes after all changes nothing.
        assert_eq!(shop.webhook(&event(&id, state)).status, 200);
        assert_eq!((shop.status(&id).as_str(), shop.stock()), (state, stock));
    }
}

#[test]
fn an_order_that_ended_is_not_asked_about() {
    let shop = TestShop::open();
    let id = shop.order();
    shop.webhook(&event(&id, "CON"));
    shop.service.states.lock().unwrap().insert(id.clone(), "CAN");
    assert_eq!(asked(&shop, &id).1["status"], "CON");
}

#[test]
fn an_order_nobody_made_is_404() {
    let shop = TestShop::open();
    assert_eq!(asked(&shop, "order_nothing").0, 404);
}

#[test]
fn a_service_that_is_away_leaves_the_order_as_it_is() {
    let shop = TestShop::open();
    let id = shop.order();
    *shop.service.refusing.lock().unwrap() = true;
    assert_eq!(
        asked(&shop, &id),
        (
            200,
            serde_json::json!({
                "externalTransactionId": id, "status": "PEN", "referenceNumber": "REF1", "amount": 15_000,
            })
        )
    );
}
