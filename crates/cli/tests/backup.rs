//! `svc backup`, taken while orders come in, and `svc keygen`.

#[path = "support/crowd.rs"]
mod crowd;
#[path = "support/postgres.rs"]
mod postgres;
mod support;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use crowd::{Crowd, Ledger};
use support::http::get;
use support::merchant::{Merchant, reference};
use support::{Folder, Place, run, svc};

const ORDERS_BEFORE: usize = 100;

#[test]
fn a_copy_taken_while_orders_come_in_serves_the_same_orders() {
    let place = Place::sqlite();
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let copy = place.folder.path("copy.db");
    let before = copy_under_load(&place, &merchant, &copy);
    assert_eq!(service.stop().code, Some(0));

    let restored = Place { database: format!("sqlite:{copy}"), folder: Folder::new() };
    let service = restored.serve();
    assert_eq!(get(&service.base_url(), "/readyz").status, 200);
    let merchant = Merchant { base_url: service.base_url(), ..merchant };
    let token = merchant.token();
    for (id, wanted) in before {
        assert_eq!(reference(&merchant.query(&token, &id)), wanted, "{id} in the copy");
    }
    reference(&merchant.create(&token, "after-the-restore").expect("the copy takes orders"));
}

#[test]
fn a_copy_takes_the_place_of_a_stopped_service_and_what_was_there_is_kept() {
    let place = Place::sqlite();
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let first = reference(&merchant.create(&merchant.token(), "order_1").unwrap());
    let copy = place.folder.path("copy.db");
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    reference(&merchant.create(&merchant.token(), "order_2").unwrap());
    place.svc(&["restore", &copy]).refused("stop it first");
    drop(service);

    let told = place.svc(&["restore", &copy]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let kept = told.stderr.lines().find_map(|line| line.split_once("is kept: ")).expect("told").1;
    let service = place.serve();
    let merchant = Merchant { base_url: service.base_url(), ..merchant };
    let token = merchant.token();
    assert_eq!(reference(&merchant.query(&token, "order_1")), first);
    assert_eq!(merchant.query(&token, "order_2").status, 404);
    let before = Place { database: format!("sqlite:{kept}"), folder: Folder::new() };
    assert_eq!(before.svc(&["order", "show", "order_2", "--json"]).json()["paymentStatus"], "PEN");
}

#[test]
fn what_is_no_whole_copy_replaces_nothing() {
    let place = Place::sqlite();
    place.partner();
    let (copy, database) = (place.folder.path("copy.db"), place.folder.path("svc.db"));
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    let mut bytes = std::fs::read(&copy).unwrap();
    let there = std::fs::read(&database).unwrap();
    place.svc(&["restore", &place.folder.path("nothing.db")]).refused("there is no copy");
    bytes.truncate(bytes.len() / 2);
    for wrong in [&bytes, &b"no database"[..].to_vec(), &Vec::new()] {
        std::fs::write(&copy, wrong).unwrap();
        let ran = place.svc(&["restore", &copy]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(std::fs::read(&database).unwrap(), there);
    }
    assert_eq!(
        std::fs::read_dir(place.folder.path("."))
            .unwrap()
            .filter(|entry| {
                entry
                    .as_ref()
                    .is_ok_and(|entry| entry.file_name().to_string_lossy().contains("partial"))
            })
            .count(),
        0
    );
}

/// Copies while orders come in; those that were acknowledged before it began.
fn copy_under_load(place: &Place, merchant: &Merchant, copy: &str) -> Ledger {
    let crowd = Crowd::start(merchant, "order");
    crowd.wait_for(ORDERS_BEFORE);
    let before = crowd.acknowledged();
    let ran = place.svc(&["backup", copy]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let (after, faults) = crowd.finish();
    assert!(faults.is_empty(), "the copy disturbs nobody: {faults:?}");
    assert!(after.len() > before.len(), "orders came in while the copy was made");
    before
}

#[test]
fn a_file_that_exists_is_never_overwritten() {
    let place = Place::sqlite();
    place.partner();
    let copy = place.folder.path("copy.db");
    std::fs::write(&copy, "precious").expect("the folder can be written");
    place.svc(&["backup", &copy]).refused("exists already");
    assert_eq!(std::fs::read_to_string(&copy).expect("it is still there"), "precious");
}

#[test]
fn a_database_that_is_not_there_is_not_copied() {
    let folder = Folder::new();
    let (from, to) = (format!("sqlite:{}", folder.path("nothing.db")), folder.path("copy.db"));
    let ran = run(&mut svc(&["backup", &to, "--database", &from]));
    ran.refused("nothing.db");
    assert!(!std::fs::exists(to).expect("the folder can be read"), "no empty copy");
}

#[test]
fn for_postgresql_its_own_tools_are_named() {
    let database = postgres::FreshDatabase::new();
    let place = database.place();
    place.svc(&["backup", &place.folder.path("copy.db")]).refused("pg_dump");
}

#[test]
fn keygen_prints_32_random_bytes_in_base64() {
    let keys = [(), ()].map(|()| {
        let ran = run(&mut svc(&["keygen"]));
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 1), "{ran:?}");
        STANDARD.decode(ran.stdout.trim()).expect("it is base64")
    });
    assert!(keys.iter().all(|key| key.len() == 32), "{keys:?}");
    assert_ne!(keys[0], keys[1]);
}
