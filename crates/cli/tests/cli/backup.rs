//! `svc backup`, taken while orders come in, and `svc keygen`.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::support::crowd::{Crowd, Ledger};
use crate::support::http::get;
use crate::support::merchant::{Merchant, reference};
use crate::support::postgres::FreshDatabase;
use crate::support::{Folder, Place, run, svc};

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
    let old_token = merchant.token();
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
    let old = merchant.query(&old_token, "order_1").status;
    assert_eq!(old, 401, "its partner may have been shut out since");
    let before = Place { database: format!("sqlite:{kept}"), folder: Folder::new() };
    assert_eq!(before.svc(&["order", "show", "order_2", "--json"]).json()["paymentStatus"], "PEN");
}

#[test]
fn an_old_log_is_never_played_into_a_restored_file() {
    let place = Place::sqlite();
    let service = place.serve();
    place.partner();
    let (copy, database) = (place.folder.path("copy.db"), place.folder.path("svc.db"));
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    assert!(!std::fs::exists(place.folder.path("copy.db-wal")).unwrap(), "a copy is one file");
    let before = place.svc(&["partner", "list", "--json"]).json();
    place.partner();
    // Killed, so that nobody puts the log away.
    drop(service);
    let log = std::fs::metadata(place.folder.path("svc.db-wal")).unwrap().len();
    assert!(log > 0, "the newest is in the log");
    // Somebody threw the file away and left the log.
    std::fs::remove_file(&database).unwrap();
    assert_eq!(place.svc(&["restore", &copy]).code, Some(0));
    assert_eq!(place.svc(&["partner", "list", "--json"]).json(), before);
    let kept = std::fs::metadata(place.folder.path("svc.db.before-restore-1-wal")).unwrap();
    assert_eq!(kept.len(), log);
}

#[test]
fn each_restore_keeps_what_it_replaces_under_a_name_of_its_own() {
    let place = Place::sqlite();
    place.partner();
    let copy = place.folder.path("copy.db");
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    place.partner();
    let newest = place.svc(&["partner", "list", "--json"]).json();
    for _ in 0..2 {
        assert_eq!(place.svc(&["restore", &copy]).code, Some(0));
    }
    let first = format!("sqlite:{}", place.folder.path("svc.db.before-restore-1"));
    let first = Place { database: first, folder: Folder::new() };
    assert_eq!(first.svc(&["partner", "list", "--json"]).json(), newest);
    assert!(std::fs::exists(place.folder.path("svc.db.before-restore-2")).unwrap());
}

#[test]
fn a_copy_is_restored_through_a_link_and_for_the_environment_it_was_made_in() {
    let place = Place::sqlite();
    place.partner();
    let copy = place.folder.path("copy.db");
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    let link = place.folder.path("link.db");
    std::os::unix::fs::symlink(place.folder.path("svc.db"), &link).unwrap();
    let linked = Place { database: format!("sqlite:{link}"), folder: Folder::new() };
    let wrong = linked.svc(&["restore", &copy, "--environment", "production"]);
    wrong.refused("is of a sandbox service");
    let production = Place::sqlite();
    assert_eq!(production.svc(&["migrate", "--environment", "production"]).code, Some(0));
    production.svc(&["restore", &copy]).refused("is of a sandbox service, not of a production one");
    assert_eq!(linked.svc(&["restore", &copy]).code, Some(0));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::exists(place.folder.path("svc.db.before-restore-1")).unwrap());
    // What stands in our folder by the service's hand leads root nowhere.
    let (lock, elsewhere) = (place.folder.path("svc.db.lock"), place.folder.path("elsewhere"));
    std::fs::write(&elsewhere, "").unwrap();
    std::fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
    place.svc(&["restore", &copy]).refused("svc.db.lock");
    std::fs::remove_file(&lock).unwrap();
    let partial = place.folder.path("svc.db.partial");
    std::fs::copy(&copy, &partial).unwrap();
    place.svc(&["restore", &partial]).refused("give it another name first");
    assert!(std::fs::exists(&partial).unwrap());
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
    let link = place.folder.path("link.db");
    std::os::unix::fs::symlink(&database, &link).unwrap();
    for itself in [&database, &link] {
        place.svc(&["restore", itself]).refused("is the database itself");
    }
    bytes.truncate(bytes.len() / 2);
    for wrong in [&bytes, &b"no database"[..].to_vec(), &Vec::new()] {
        std::fs::write(&copy, wrong).unwrap();
        let ran = place.svc(&["restore", &copy]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(std::fs::read(&database).unwrap(), there);
    }
    assert!(!std::fs::exists(place.folder.path("svc.db.partial")).unwrap());
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
fn a_database_of_an_older_version_is_copied_as_it_is() {
    let place = Place::sqlite();
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
    let (path, copy) = (place.folder.path("svc.db"), place.folder.path("copy.db"));
    let version = |path: &str| -> i64 {
        let sql = "select max(version) from refinery_schema_history";
        let db = rusqlite::Connection::open(path).expect("it can be opened");
        db.query_row(sql, [], |row| row.get(0)).expect("it has a version")
    };
    let latest = version(&path);
    let before =
        format!("select max(version) from refinery_schema_history where version < {latest}");
    let db = rusqlite::Connection::open(&path).expect("it can be opened");
    let older = "delete from refinery_schema_history where version = ?1";
    let before: i64 = db.query_row(&before, [], |row| row.get(0)).expect("there was one before");
    db.execute(older, [latest]).expect("it can be changed");
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    assert_eq!((version(&path), version(&copy)), (before, before));
    let other = place.folder.path("other.db");
    place.svc(&["backup", &other, "--environment", "production"]).refused("of a sandbox service");
}

#[test]
fn a_database_of_a_newer_version_serves_if_that_only_added() {
    let place = Place::sqlite();
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
    let (path, copy) = (place.folder.path("svc.db"), place.folder.path("copy.db"));
    let step = |version: i64, name: &str| {
        let db = rusqlite::Connection::open(&path).expect("it can be opened");
        let sql = "insert into refinery_schema_history (version, name) values (?1, ?2)";
        db.execute(sql, (version, name)).expect("it can be changed");
    };
    step(98, "adds_notes");
    assert_eq!(place.svc(&["partner", "create", "Loja"]).code, Some(0));
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    assert_eq!(place.svc(&["restore", &copy]).code, Some(0));
    step(99, "later");
    place.svc(&["partner", "list"]).refused("the database is of a newer svc (schema 99");
    let newer = place.folder.path("newer.db");
    assert_eq!(place.svc(&["backup", &newer]).code, Some(0));
    place.svc(&["restore", &newer]).refused("the database is of a newer svc (schema 99");
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
    let database = FreshDatabase::new();
    let place = database.place();
    place.partner();
    place.svc(&["backup", &place.folder.path("copy.db")]).refused("pg_dump");
}

#[test]
fn keygen_prints_32_random_bytes_in_base64() {
    let keys = [(), ()].map(|()| {
        let ran = run(&mut svc(&["keygen"]));
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 1), "{ran:?}");
        STANDARD.decode(ran.stdout.trim()).expect("it is base64")
    });
    let folder = Folder::new();
    let file = folder.path("master-key");
    let into_file = || run(&mut svc(&["keygen", "--out", &file]));
    assert_eq!((into_file().code, into_file().code), (Some(0), Some(1)));
    into_file().refused("a file that is there is not replaced");
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(STANDARD.decode(written.trim()).unwrap().len(), 32);
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    assert!(keys.iter().all(|key| key.len() == 32), "{keys:?}");
    assert_ne!(keys[0], keys[1]);
}
