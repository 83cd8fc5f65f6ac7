//! Lists: every row once, filters in the address, any id finds its order, and the file has them all.

use std::collections::HashSet;

use hyper::StatusCode;
use svc_service::app::House;
use svc_service::domain::*;
use svc_service::store::Created;

use super::world::{Visitor, World, ids_on, next_page, orders_on};
use crate::support::*;

on_both_engines! {
    pages_of_orders_hold_every_order_once,
    a_full_last_page_leads_nowhere,
    pages_of_a_rare_status_hold_every_one_of_them,
    an_order_is_found_by_its_amount_however_old_it_is,
    filters_stand_in_the_address_of_every_link,
    pages_of_events_and_of_the_history_hold_every_row_once,
    pages_of_exceptions_hold_every_row_once,
    any_id_finds_its_order,
    the_file_is_streamed_and_complete,
    a_merchant_with_many_files_leaves_room_for_others,
    no_cell_of_the_file_is_a_formula,
}

/// Orders of "Loja", past the API: many, a second apart.
async fn many_orders(world: &World, count: usize) -> Vec<String> {
    let known = world.app().directory.known();
    let uuid = world.service.partner.application.publishable_key.application_uuid();
    let application = known.application(uuid).unwrap().id.0;
    let mut references = Vec::new();
    let numbers: Vec<_> = (0..count).collect();
    // Not all at once: the service would refuse so many.
    for lot in numbers.chunks(1_000) {
        let mut made = Vec::new();
        for number in lot {
            let mut new = new_order(application, &format!("loja-many-{number}"));
            let created_at = at(-1_000 * i64::try_from(*number).unwrap());
            new.reference_number = ReferenceNumber::assign(created_at, random());
            new.created_at = created_at;
            references.push(new.reference_number.as_str().to_owned());
            let store = world.app().clone();
            made.push(tokio::spawn(async move { store.store.create_order(new).await.unwrap() }));
        }
        for one in made {
            assert!(matches!(one.await.unwrap(), Created::New(_)));
        }
    }
    references
}

/// From page to page by the button "older".
async fn walk(
    world: &World,
    who: &Visitor,
    first: &str,
    rows: impl Fn(&Answer) -> Vec<String>,
) -> Vec<String> {
    let mut seen = Vec::new();
    let mut target = Some(first.to_owned());
    while let Some(at) = target {
        let answer = world.get(who, &at).await;
        assert_eq!(answer.status, StatusCode::OK, "{at}");
        let page = rows(&answer);
        assert!(page.len() <= 50, "{at}");
        seen.extend(page);
        target = next_page(&answer);
        assert!(seen.len() < 10_000, "it goes round in circles");
    }
    let unique: HashSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len(), "a row came twice");
    seen
}

async fn pages_of_orders_hold_every_order_once(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, olga) = (world.owner().await, world.operator().await);
    let made = many_orders(&world, 120).await;
    for (who, more) in [(&ana, 3), (&olga, 4)] {
        let seen = walk(&world, who, "/console/orders", orders_on).await;
        assert_eq!(seen.len(), made.len() + more);
        assert!(made.iter().all(|one| seen.contains(one)));
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first");
    }
    let day = "/console/orders?from=2027-01-01&to=2027-12-31";
    assert_eq!(walk(&world, &ana, day, orders_on).await.len(), 120);
    let none = "/console/orders?from=2030-01-01";
    assert!(walk(&world, &ana, none, orders_on).await.is_empty());
}

async fn a_full_last_page_leads_nowhere(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    many_orders(&world, 100).await;
    let paid = async |count: usize| {
        let sql = format!(
            "update orders set status = 'CON' where external_transaction_id in
             (select external_transaction_id from orders where external_transaction_id like 'loja-many-%'
              order by reference_number limit {count})"
        );
        world.service.sql(&sql).await;
        world.get(&ana, "/console/orders?status=CON").await
    };
    // One of the world's own orders is paid.
    let full = paid(49).await;
    assert_eq!((orders_on(&full).len(), next_page(&full)), (50, None));
    let fuller = paid(50).await;
    let rest = next_page(&fuller).expect("there is one more");
    assert_eq!(orders_on(&fuller).len(), 50);
    let last = world.get(&ana, &rest).await;
    assert_eq!((orders_on(&last).len(), next_page(&last)), (1, None));
}

async fn pages_of_a_rare_status_hold_every_one_of_them(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let made = many_orders(&world, 2_500).await;
    // The newest, the oldest and some between; the last lie behind two long stretches of others.
    let rare: HashSet<_> = [0, 1, 999, 1_000, 1_001, 2_498, 2_499].map(|n| &made[n]).into();
    for reference in &rare {
        let sql =
            format!("update orders set status = 'CON' where reference_number = '{reference}'");
        world.service.sql(&sql).await;
    }
    let seen = walk(&world, &ana, "/console/orders?status=CON", orders_on).await;
    assert_eq!(seen.len(), rare.len() + 1, "and the one that was paid");
    assert!(rare.iter().all(|one| seen.contains(one)));
    let csv = world.get(&ana, "/console/orders.csv?status=CON").await.text;
    assert_eq!(csv.lines().count(), 1 + rare.len() + 1);
}

async fn an_order_is_found_by_its_amount_however_old_it_is(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let made = many_orders(&world, 5_100).await;
    let oldest = made.last().unwrap().as_str();
    let sql = format!("update orders set amount = 7777 where reference_number = '{oldest}'");
    world.service.sql(&sql).await;
    let first = world.get(&ana, "/console/orders?amount=7777").await;
    assert!(orders_on(&first).is_empty(), "one page does not look at all of them");
    assert!(first.text.contains("None among the newest."), "{}", first.text);
    for asked in ["amount=7777", "amount=Kz+7,777&status=PEN"] {
        let seen = walk(&world, &ana, &format!("/console/orders?{asked}"), orders_on).await;
        assert_eq!(seen, [oldest], "{asked}");
    }
    let nonsense = world.get(&ana, "/console/orders?amount=muito").await;
    assert!(orders_on(&nonsense).is_empty(), "it is not taken for any amount");
}

async fn filters_stand_in_the_address_of_every_link(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    many_orders(&world, 60).await;
    let uuid = world.service.application();
    let query = format!("application={uuid}&status=PEN&amount=15000&from=2026-01-01&to=2027-12-31");
    let first = world.get(&ana, &format!("/console/orders?{query}")).await;
    let next = next_page(&first).unwrap();
    assert!(next.starts_with(&format!("/console/orders?{query}&before=")), "{next}");
    let second = world.get(&ana, &next).await;
    let text = super::world::unescaped(&second.text);
    assert!(text.contains(&format!("href=\"/console/orders?{query}\"")), "back to the newest");
    assert!(text.contains(&format!("href=\"/console/orders.csv?{query}\"")));
    assert!(text.contains("<option value=\"PEN\" selected>"));
    // The day begins at midnight in Luanda, an hour before it does in London.
    let late = "2027-01-14T23:30:00Z".parse::<jiff::Timestamp>().unwrap();
    let known = world.app().directory.known();
    let key = world.service.partner.application.publishable_key.application_uuid();
    let mut new = new_order(known.application(key).unwrap().id.0, "loja-midnight");
    new.reference_number = ReferenceNumber::assign(late, random());
    new.created_at = late;
    world.app().store.create_order(new.clone()).await.unwrap();
    for (day, found) in [("2027-01-14", false), ("2027-01-15", true)] {
        let target = format!("/console/orders?from={day}&to={day}");
        let seen = walk(&world, &ana, &target, orders_on).await;
        assert_eq!(seen.contains(&new.reference_number.as_str().to_owned()), found, "{day}");
    }
}

async fn pages_of_events_and_of_the_history_hold_every_row_once(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, olga) = (world.owner().await, world.operator().await);
    many_orders(&world, 70).await;
    // An event for each, delivered long ago.
    world
        .service
        .sql(
            "insert into outbox (id, application_id, reference_number, status, webhook_url, origin,
                 body, state, attempts, failures, created_at_ms, queued_at_ms, next_attempt_at_ms)
             select 'evt_' || o.reference_number, o.application_id, o.reference_number, e.status,
                 e.webhook_url, e.origin, e.body, 'delivered', 1, 0, o.created_at_ms,
                 o.created_at_ms, o.created_at_ms
             from orders o cross join (select * from outbox limit 1) e
             where o.external_transaction_id like 'loja-many-%'",
        )
        .await;
    let events = |answer: &Answer| {
        ids_on(answer, "<td class=\"wide\" data-label=\"\"><a href=\"/console/webhooks/")
    };
    let delivered = world.service.count("outbox").await;
    for target in ["/console/webhooks", "/console/webhooks?state=delivered"] {
        let seen = walk(&world, &ana, target, events).await;
        assert_eq!(i64::try_from(seen.len()).unwrap(), delivered, "{target}");
    }
    for state in ["queued", "failing", "exhausted", "superseded"] {
        let target = format!("/console/webhooks?state={state}");
        assert!(walk(&world, &ana, &target, events).await.is_empty(), "{state}");
    }
    for number in 0..110 {
        let by = Author::command_line(None);
        let subject = format!("subject-{}", number % 2);
        let at = world.app().clock.now();
        world.app().store.note(at, &by, "test.note", &subject, "").await.unwrap();
    }
    let rows = |answer: &Answer| {
        ids_on(answer, "<td class=\"number\" data-label=\"#\"><span>")
            .into_iter()
            .map(|text| text.split('<').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let seen = walk(&world, &olga, "/console/audit", rows).await;
    assert_eq!(i64::try_from(seen.len()).unwrap(), world.service.count("audit").await);
    assert_eq!(walk(&world, &olga, "/console/audit?subject=subject-1", rows).await.len(), 55);
}

async fn pages_of_exceptions_hold_every_row_once(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, olga) = (world.owner().await, world.operator().await);
    for number in 0..110 {
        let notice =
            Notice { rail_payment_id: format!("again-{number}"), ..payment_of(&world.paid) };
        svc_service::orders::settle(world.app(), notice, "").await.unwrap();
    }
    let nobodys = Notice {
        about: About::Order(ReferenceNumber::parse(&("0".repeat(25) + "Z")).unwrap()),
        rail_payment_id: "nobodys".into(),
        ..payment_of(&world.paid)
    };
    svc_service::orders::settle(world.app(), nobodys, "").await.unwrap();
    let rows = |answer: &Answer| ids_on(answer, "<section class=\"card\" aria-label=\"");
    let of_loja = format!("/console/exceptions?application={}", world.service.application());
    for (who, target, count) in [
        (&ana, "/console/exceptions", 111),
        (&olga, "/console/exceptions?show=all", 112),
        (&olga, &of_loja, 111),
    ] {
        assert_eq!(walk(&world, who, target, rows).await.len(), count, "{} {target}", who.login);
    }
}

async fn any_id_finds_its_order(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let open = world.open.reference_number.as_str();
    let simulate = format!("/console/orders/{open}/simulate");
    world.post(&ana, &simulate, "outcome=pending").await;
    let dossier = world.app().store.dossier(&world.open.reference_number).await.unwrap().unwrap();
    let attempt = &dossier.attempts[0];
    let Instrument::Reference(Some(bank)) = &attempt.instrument else { panic!("{attempt:?}") };
    let event = world.event().await;
    let spaced: Vec<_> = bank.number().as_bytes().chunks(3).collect();
    let spaced = String::from_utf8(spaced.join(&b' ')).unwrap();
    for (id, found) in [
        (open, open),
        (&open.to_lowercase(), open),
        ("loja-open", open),
        ("  loja-open ", open),
        (attempt.id.as_str(), open),
        (bank.number(), open),
        (&spaced, open),
        (&format!("{} / {spaced}", bank.entity()), open),
    ] {
        let query: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        let answer = world.get(&ana, &format!("/console/search?id={query}")).await;
        assert_eq!(answer.header("location"), Some(&*format!("/console/orders/{found}")), "{id}");
    }
    for id in [event.clone(), format!("%20{event}%20")] {
        let answer = world.get(&ana, &format!("/console/search?id={id}")).await;
        assert_eq!(answer.header("location"), Some(&*format!("/console/webhooks/{event}")), "{id}");
    }
    // Two merchants may use the same id for an order: an operator sees both.
    let service = &world.service;
    let url = world.receiver.url();
    super::world::create(service, &service.partner, "same", &url).await;
    super::world::create(service, &service.stranger, "same", &url).await;
    let olga = world.operator().await;
    assert_eq!(orders_on(&world.get(&olga, "/console/search?id=same").await).len(), 2);
    let own = world.get(&ana, "/console/search?id=same").await;
    assert_eq!(own.status, StatusCode::SEE_OTHER);
}

async fn the_file_is_streamed_and_complete(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let made = many_orders(&world, 2_100).await;
    let answer = world.get(&ana, "/console/orders.csv").await;
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(answer.header("content-length"), None, "it is sent while it is read");
    assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"orders.csv\""));
    let rows: Vec<_> = answer.text.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), 1 + 3 + made.len());
    let references: HashSet<_> = rows.iter().map(|row| row.split(',').next().unwrap()).collect();
    assert_eq!(references.len(), rows.len());
    assert!(made.iter().all(|one| references.contains(one.as_str())));
    let uuid = world.service.application();
    assert!(rows.iter().skip(1).all(|row| row.split(',').count() == 7), "{uuid}");
    assert_eq!(world.told("user:ana@loja.ao", "orders.export", "orders").await, 1);
}

async fn a_merchant_with_many_files_leaves_room_for_others(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, olga) = (world.owner().await, world.operator().await);
    let own = House::Merchant(world.partner_id(&world.service.partner));
    let held: Vec<_> = std::iter::from_fn(|| world.app().exporting.take(own)).collect();
    assert_eq!(held.len(), 2);
    let refused = world.get(&ana, "/console/orders.csv").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.text.contains("Too many at once"), "{}", refused.text);
    assert_eq!(world.get(&olga, "/console/orders.csv").await.status, StatusCode::OK);
    drop(held);
    for _ in 0..5 {
        let answer = world.get(&ana, "/console/orders.csv").await;
        assert_eq!(answer.status, StatusCode::OK, "a file that was read holds nothing any more");
    }
}

async fn no_cell_of_the_file_is_a_formula(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let service = &world.service;
    let token = service.token(&service.partner).await;
    for (id, name) in [
        ("=1+1", "=HYPERLINK(\"http://evil\",\"x\")"),
        ("+1", "+244 923"),
        ("-1", "-cmd|' /C calc'!A0"),
        ("@a", "@SUM(A1)"),
        ("a,b\"c", "Ténis, 42 \"azul\""),
        ("<b>&amp;'", "<script>alert(1)</script>"),
        ("../../x?y#z%00", "＝1+1"),
    ] {
        let mut body = service.order(id);
        body["name"] = name.into();
        let answer = service.create(&token, &body).await;
        assert!(answer.status.is_success(), "{id}: {}", answer.text);
        // The page is a page, and the search takes any id.
        let query: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        let found = world.get(&ana, &format!("/console/search?id={query}")).await;
        assert_eq!(found.status, StatusCode::SEE_OTHER, "{id}");
        let page = world.get(&ana, found.header("location").unwrap()).await;
        assert_eq!(page.status, StatusCode::OK, "{id}");
        assert!(!page.text.contains("<script>alert") && !page.text.contains("<b>&amp;"), "{id}");
    }
    let csv = world.get(&ana, "/console/orders.csv").await.text;
    for expected in [
        ",'=1+1,",
        ",\"'=HYPERLINK(\"\"http://evil\"\",\"\"x\"\")\",",
        ",'+1,",
        ",'-1,",
        ",'@SUM(A1),",
        ",\"a,b\"\"c\",",
        ",\"Ténis, 42 \"\"azul\"\"\",",
        ",'＝1+1,",
    ] {
        assert!(csv.contains(expected), "{expected} in {csv}");
    }
    let list = world.get(&ana, "/console/orders").await.text;
    assert!(!list.contains("<script>alert"));
}
