//! What goes wrong around the service: disks that are full, files that are swapped, words that mean nothing.

use std::path::Path;
use std::process::Command;

use crate::support::http::get;
use crate::support::merchant::{Merchant, reference};
use crate::support::postgres::{FreshDatabase, execute};
use crate::support::{Place, Service, run, svc};

/// The same command, with one of its outputs on a device that takes nothing.
fn onto_full_device(command: &Command, output: u8) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec \"$0\" \"$@\" {output}>/dev/full")]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

#[test]
fn a_secret_that_could_not_be_shown_is_a_failure() {
    let place = Place::sqlite();
    place.partner();
    let mut create = svc(&["partner", "create", "Loja", "--database"]);
    let ran = run(&mut onto_full_device(create.arg(&place.database), 1));
    ran.refused("could not be written");
}

#[test]
fn a_service_whose_log_cannot_be_written_goes_on() {
    let place = Place::sqlite();
    let mut serve = onto_full_device(&place.serving(&[]), 2);
    let service = Service::start(serve.env("SVC_SERVER_LOG", "trace"));
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let token = merchant.token();
    let created = reference(&merchant.create(&token, "order_1").unwrap());
    assert_eq!(reference(&merchant.query(&token, "order_1")), created);
    assert_eq!(service.stop().code, Some(0));
}

#[test]
fn a_closed_terminal_or_rotated_log_ends_nothing() {
    let place = Place::sqlite();
    let service = place.serve();
    let pid = service.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    assert_eq!(get(&service.base_url(), "/readyz").status, 200);
    assert_eq!(service.stop().code, Some(0));
}

#[test]
fn nothing_is_acknowledged_into_a_file_that_was_replaced() {
    let place = Place::sqlite();
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let token = merchant.token();
    reference(&merchant.create(&token, "order_1").unwrap());
    let copy = place.folder.path("copy.db");
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    std::fs::rename(&copy, place.folder.path("svc.db")).unwrap();
    let answer = merchant.create(&token, "order_2");
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 503));
    let ended = service.ended();
    assert_ne!(ended.code, Some(0));
    assert!(ended.stderr.contains("was replaced, moved or removed"), "{ended:?}");
}

#[test]
fn a_database_that_cannot_be_used_is_told_with_what_to_do() {
    let place = Place::sqlite();
    place.partner();
    let held = rusqlite::Connection::open(place.folder.path("svc.db")).unwrap();
    held.execute_batch("begin immediate").unwrap();
    place.svc(&["partner", "create", "Loja"]).refused("another process holds the database");
    drop(held);
    let mut bytes = std::fs::read(place.folder.path("svc.db")).unwrap();
    for (damage, told) in [(100, "svc restore COPY"), (0, "no database of this service")] {
        bytes[damage..damage + 64].fill(0xA5);
        std::fs::write(place.folder.path("svc.db"), &bytes).unwrap();
        place.svc(&["partner", "list"]).refused(told);
    }
}

#[test]
fn a_stop_leaves_a_file_alone_that_took_the_place_of_ours() {
    let place = Place::sqlite();
    let service = place.serve();
    place.partner();
    let copy = place.folder.path("copy.db");
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    place.partner();
    let whole = std::fs::read(&copy).unwrap();
    std::fs::rename(&copy, place.folder.path("svc.db")).unwrap();
    service.stop();
    assert!(std::fs::read(place.folder.path("svc.db")).unwrap() == whole);
}

#[test]
fn after_a_stop_the_one_file_is_all_there_is_to_copy() {
    let place = Place::sqlite();
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    reference(&merchant.create(&merchant.token(), "order_1").unwrap());
    assert_eq!(service.stop().code, Some(0));
    let log = std::fs::metadata(place.folder.path("svc.db-wal")).map_or(0, |log| log.len());
    assert_eq!(log, 0, "the log was not put away");
    let elsewhere = Place::sqlite();
    std::fs::copy(place.folder.path("svc.db"), elsewhere.folder.path("svc.db")).unwrap();
    let shown = elsewhere.svc(&["order", "show", "order_1", "--json"]).json();
    assert_eq!(shown["paymentStatus"], "PEN");
}

#[test]
fn a_database_of_something_else_is_left_as_it_is() {
    let place = Place::sqlite();
    let path = place.folder.path("svc.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("create table crm (a)").unwrap();
    let before = std::fs::read(&path).unwrap();
    for command in [&["partner", "list"][..], &["migrate"], &["serve"]] {
        place.svc(command).refused("is a SQLite database of something else");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn so_is_a_database_of_postgresql() {
    let database = FreshDatabase::new();
    let place = database.place();
    execute(&place.database, "create table crm (a int)").unwrap();
    for command in [&["partner", "list"][..], &["migrate"], &["serve"], &["doctor"]] {
        let ran = place.svc(command);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("holds tables of something else"), "{command:?}: {ran:?}");
    }
    execute(&place.database, "drop table crm").unwrap();
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
}

#[test]
fn a_first_migration_that_was_cut_off_goes_on() {
    let database = FreshDatabase::new();
    let place = database.place();
    let begun = "create table refinery_schema_history
                 (version int4 primary key, name varchar(255), applied_on varchar(255), checksum varchar(255))";
    execute(&place.database, begun).unwrap();
    place.svc(&["partner", "list"]).refused("run svc migrate first");
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
}

#[test]
fn a_role_that_may_not_write_is_told() {
    let database = FreshDatabase::new();
    let place = database.place();
    let role = format!("svc_reader_{}", std::process::id());
    let sql = |text: &str| execute(&place.database, &text.replace("ROLE", &role)).unwrap();
    sql("revoke create on schema public from public");
    sql("create role ROLE login");
    let (_, server) = place.database.split_once('@').expect("the URL names its user");
    let reader = format!("postgres://{role}@{server}");
    run(&mut svc(&["migrate", "--database", &reader]))
        .refused("permission denied for schema public");
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
    sql("grant select, insert on all tables in schema public to ROLE");
    sql("grant create on schema public to ROLE");
    let doctor = run(&mut svc(&["doctor", "--database", &reader]));
    let told = format!("the role {role} may not write");
    assert!(doctor.stdout.contains(&told), "{doctor:?}");
    sql("grant update on all tables in schema public to ROLE");
    let doctor = run(&mut svc(&["doctor", "--database", &reader]));
    assert!(!doctor.stdout.contains(&told), "{doctor:?}");
    sql("drop owned by ROLE; drop role ROLE");
}

#[test]
fn an_empty_file_is_no_database() {
    let place = Place::sqlite();
    std::fs::File::create(place.folder.path("svc.db")).unwrap();
    place.svc(&["partner", "list"]).refused("there is no database");
}

#[test]
fn a_copy_stands_under_its_name_when_it_is_whole() {
    let place = Place::sqlite();
    place.partner();
    let copy = place.folder.path("copy.db");
    let partial = format!("{copy}.partial");
    std::fs::write(&partial, "what a copy left that was cut off").unwrap();
    assert_eq!(place.svc(&["backup", &copy]).code, Some(0));
    assert!(Path::new(&copy).exists() && !Path::new(&partial).exists());
}

#[test]
fn settings_that_mean_nothing_are_refused_and_no_secret_is_told() {
    let place = Place::sqlite();
    let serve = |arguments: &[&str]| {
        let mut command = svc(&["serve", "--database", &place.database]);
        command.args(arguments);
        command
    };
    run(serve(&[]).env("SVC_SERVER_LOG", "inof")).refused("give a level");
    for connections in ["0", "9999999999999999999"] {
        run(&mut serve(&["--connections", connections])).refused("connections must be 1 to");
    }
    run(&mut serve(&["--commit-batch-max", "0"])).refused("commit_batch_max must be 1 to");
    for limit in ["--partner-requests-per-second", "--checkout-polls-per-second"] {
        run(&mut serve(&[limit, "0"])).refused("must be at least 1");
    }
    for address in [
        "ftp://svc.ao",
        "svc.ao",
        "https://ana@svc.ao",
        "https://:pw@svc.ao",
        "https://svc.ao/?a=b",
    ] {
        run(&mut serve(&["--public-url", address])).refused("write it like https://");
    }
    run(&mut serve(&["--tls-cert", "cert.pem"])).refused("give --tls-cert and --tls-key");
    let file = place.folder.path("svc.toml");
    std::fs::write(&file, "log = 1\nmaster_key = \"s3cr3t-of-mine\nlisten = \"x\"\n").unwrap();
    let ran = run(&mut serve(&["--config", &file]));
    ran.refused("line 2");
    assert!(!ran.stderr.contains("s3cr3t"), "{ran:?}");
    for (settings, told) in [
        ("trusted_proxies = \"10.0.0.0/8\"", "trusted_proxies is a list of networks"),
        ("trusted_proxies = [\"10.0.0.0/33\"]", "not \"10.0.0.0/33\""),
        ("[rail]\nname = \"acquirer\"", "with two brackets"),
        ("express_label = \" \"", "express_label is empty: leave it out for Multicaixa Express"),
    ] {
        std::fs::write(&file, settings).unwrap();
        run(&mut serve(&["--config", &file])).refused(told);
    }
    let blank = place.svc(&["exception", "resolve", "1", "--accept", "--reason", " "]);
    assert!(blank.code == Some(2) && blank.stderr.contains("must not be empty"), "{blank:?}");
}
