//! `svc doctor`: a sound deployment is told so, and each fault with its fix; nothing is changed.

use std::process::Command;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::Value;

use crate::support::postgres::{FreshDatabase, execute};
use crate::support::receiver::Receiver;
use crate::support::{Place, Ran, run, svc};

fn doctor(place: &Place, more: &[&str]) -> Command {
    let mut command = svc(&["doctor", "--json", "--database", &place.database]);
    // Nobody is there, and nobody is asked.
    command.args(["--listen", "127.0.0.1:0", "--dns-name", "localhost"]).args(more);
    command
}

fn examined(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|fault| panic!("{fault}: {ran:?}"))
}

/// The state of a check and what is said about it; a fault always comes with its fix.
fn told(report: &Value, id: &str) -> (String, String) {
    let checks = report["checks"].as_array().expect("a list");
    let check = checks.iter().find(|check| check["id"] == id);
    let check = check.unwrap_or_else(|| panic!("{id} was not looked at: {report}"));
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let state = text("state");
    assert_eq!(state == "ok", text("fix").is_empty(), "a fix for each fault: {check}");
    (state, text("what"))
}

fn is(report: &Value, id: &str, state: &str, part: &str) {
    let (found, what) = told(report, id);
    assert_eq!(found, state, "{id}: {what}");
    assert!(what.contains(part), "{id}: {part:?} is not in {what:?}");
}

#[test]
fn a_running_sandbox_is_fine_and_known_by_its_address() {
    let place = Place::sqlite();
    let service = place.serve();
    let listen = service.ready()["listen"].as_str().expect("an address").to_owned();
    let arguments = ["doctor", "--json", "--database", &place.database, "--listen", &listen];
    let ran = run(svc(&arguments).args(["--dns-name", "localhost"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = examined(&ran);
    for id in ["database", "schema", "environment", "durability", "master key", "clock", "disk"] {
        is(&report, id, "ok", "");
    }
    is(&report, "public url", "ok", "is this service, and ready");
    is(&report, "dns", "ok", "localhost has");
    is(&report, "webhook guard", "ok", "private_webhook_targets is not set");
    let mut plain = svc(&["doctor", "--database", &place.database]);
    let text = run(plain.args(["--listen", &listen]));
    for part in ["✓ schema", "✓ dns            not tried", " 0 wrong."] {
        assert!(text.stdout.contains(part), "{part}: {text:?}");
    }
    let away =
        run(svc(&["doctor", "--database", &place.database]).args(["--listen", "127.0.0.1:1"]));
    for part in ["connection refused", "give --listen or --public-url", " 1 warning, "] {
        assert!(away.stdout.contains(part), "{part}: {away:?}");
    }
}

#[test]
fn a_database_that_is_not_there_or_empty_is_told_and_not_made() {
    let place = Place::sqlite();
    let ran = run(&mut doctor(&place, &[]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    is(&examined(&ran), "database", "failed", "there is no database");
    let path = place.folder.path("svc.db");
    assert!(!std::path::Path::new(&path).exists(), "looking makes nothing");
    std::fs::write(&path, "").expect("it can be written");
    let ran = run(&mut doctor(&place, &[]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    is(&examined(&ran), "database", "failed", "there is no database");
}

#[test]
fn nobody_is_told_to_change_a_file_that_is_no_database_of_ours() {
    let place = Place::sqlite();
    let path = place.folder.path("svc.db");
    std::fs::write(&path, "root:x:0:0:root\n".repeat(100)).expect("it can be written");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&path, everybody).expect("it is ours");
    let ran = run(&mut doctor(&place, &[]));
    is(&examined(&ran), "database", "failed", &path);
    assert!(!ran.stdout.contains("chmod"), "{ran:?}");
}

#[test]
fn production_is_warned_where_no_rail_offers_the_own_method() {
    let place = Place::sqlite();
    let key = run(&mut svc(&["keygen"])).stdout.trim().to_owned();
    let secret = run(&mut svc(&["keygen", "--rail"])).stdout.trim().to_owned();
    let settings = place.folder.path("svc.toml");
    let look = |methods: &'static str| {
        let connector = Receiver::start(move |_| (200, format!("{{\"methods\":[{methods}]}}")));
        let table = format!("[[rail]]\nname = \"bank\"\nurl = \"{}\"\n", connector.url());
        let text = format!("{table}secret = \"{secret}\"\n");
        std::fs::write(&settings, text).expect("it can be written");
        let more = ["--config", &settings, "--environment", "production"];
        let ran = run(doctor(&place, &more).env("SVC_SERVER_MASTER_KEY", &key));
        std::fs::remove_file(&settings).expect("nobody finds it later");
        examined(&ran)
    };
    let migrate = ["migrate", "--environment", "production", "--database", &place.database];
    assert_eq!(run(svc(&migrate).env("SVC_SERVER_MASTER_KEY", &key)).code, Some(0));
    let express = look(r#"{"code":"FPMCXEXPRSS","min":1,"max":9}"#);
    is(&express, "rail", "ok", "FPMCXEXPRSS");
    is(&express, "methods", "warning", "no rail offers FPSOLPG, which payers always have");
    let own = look(r#"{"code":"FPSOLPG","min":1,"max":9}"#).to_string();
    assert!(own.contains("answers and offers FPSOLPG") && !own.contains("\"methods\""), "{own}");
}

#[test]
fn a_schema_of_another_version_is_told_and_left_alone() {
    let database = FreshDatabase::new();
    let place = database.place();
    is(&examined(&run(&mut doctor(&place, &[]))), "schema", "failed", "is empty");
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
    is(&examined(&run(&mut doctor(&place, &[]))), "clock", "ok", "as the database says");
    let change = |sql: &str| execute(&place.database, sql).expect("it can be changed");
    let last = "(select max(abs(version)) from refinery_schema_history)";
    change(&format!(
        "update refinery_schema_history set version = -version where version = {last}"
    ));
    for _ in 0..2 {
        let ran = run(&mut doctor(&place, &[]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        is(&examined(&ran), "schema", "warning", "of ");
    }
    change("update refinery_schema_history set version = -version where version < 0");
    change("insert into refinery_schema_history (version, name) values (98, 'adds_notes')");
    is(&examined(&run(&mut doctor(&place, &[]))), "schema", "ok", "version 98, of a newer svc");
    assert_eq!(place.svc(&["partner", "create", "Loja"]).code, Some(0));
    change("insert into refinery_schema_history (version, name) values (99, 'later')");
    let ran = run(&mut doctor(&place, &["--environment", "production"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    is(&examined(&ran), "schema", "failed", "of a newer svc");
    is(&examined(&ran), "environment", "failed", "the database is of a sandbox");
    place.svc(&["migrate"]).refused("the database is of a newer svc (schema 99");
}

#[test]
fn what_serve_refuses_of_a_file_is_told_before_it_is_started() {
    let place = Place::sqlite();
    let key = run(&mut svc(&["keygen"])).stdout.trim().to_owned();
    let create = ["partner", "create", "Loja", "--database", &place.database];
    let made = run(svc(&create).env("SVC_SERVER_MASTER_KEY", &key));
    assert_eq!(made.code, Some(0), "{made:?}");
    let ran = run(&mut doctor(&place, &[]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    is(&examined(&ran), "master key", "failed", "goes by one");
    is(&examined(&ran), "database file", "ok", "");

    let path = place.folder.path("svc.db");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&path, everybody).expect("it is ours");
    let ran = run(doctor(&place, &[]).env("SVC_SERVER_MASTER_KEY", &key));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    is(&examined(&ran), "database file", "warning", "everybody");

    // A page in the middle of it, once all is in it.
    assert_eq!(place.svc(&["backup", &place.folder.path("whole.db")]).code, Some(0));
    std::fs::rename(place.folder.path("whole.db"), &path).expect("it is ours");
    for beside in ["svc.db-wal", "svc.db-shm"] {
        let _ = std::fs::remove_file(place.folder.path(beside));
    }
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes[4096..8 * 4096].fill(0xff);
    std::fs::write(&path, bytes).expect("it is ours");
    let ran = run(doctor(&place, &[]).env("SVC_SERVER_MASTER_KEY", &key));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    is(&examined(&ran), "database", "failed", "is damaged");
}

#[test]
fn secrets_that_everybody_may_read_are_told() {
    let place = Place::sqlite();
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
    let [key, rail, settings] =
        ["master.key", "rail.secret", "svc.toml"].map(|name| place.folder.path(name));
    let table = "[[rail]]\nname = \"bank\"\nurl = \"http://127.0.0.1:1\"\n";
    let own = "[[rail]]\nname = \"other\"\nurl = \"http://127.0.0.1:1\"\nsecret = \"whsec_bm9ib2R5IGtub3dzIHRoaXMgb25l\"\n";
    std::fs::write(&key, run(&mut svc(&["keygen"])).stdout).expect("it can be written");
    std::fs::write(&rail, "whsec_YW5vdGhlciBvbmUgdGhhdCBpcyBsb25n").expect("it can be written");
    std::fs::write(&settings, format!("{table}secret_file = {rail:?}\n{own}"))
        .expect("it can be written");
    let files = [&key, &rail, &settings];
    let allow = |path: &str, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("it is ours");
    };
    let told_of = || {
        let mut command = doctor(&place, &["--config", &settings]);
        let report = examined(&run(command.env("SVC_SERVER_MASTER_KEY_FILE", &key)));
        let checks = report["checks"].as_array().expect("a list").clone();
        let warned = |check: &&Value| check["id"] == "secret file" && check["state"] == "warning";
        let told = checks.iter().filter(warned).map(|check| check["fix"].to_string());
        told.collect::<Vec<_>>()
    };
    files.iter().for_each(|path| allow(path, 0o640));
    assert_eq!(told_of(), [""; 0]);
    for path in files {
        allow(path, 0o644);
        let told = told_of();
        assert!(told.len() == 1 && told[0].contains(path.as_str()), "{path}: {told:?}");
        allow(path, 0o600);
    }
}

#[test]
fn production_is_held_to_its_rules_and_its_key() {
    let place = Place::sqlite();
    let key = || run(&mut svc(&["keygen"])).stdout.trim().to_owned();
    let (right, wrong) = (key(), key());
    let create = ["partner", "create", "Loja", "--environment", "production", "--database"];
    let migrate = ["migrate", "--environment", "production", "--database", &place.database];
    assert_eq!(run(&mut svc(&migrate)).code, Some(0));
    let made = run(svc(&create).arg(&place.database).env("SVC_SERVER_MASTER_KEY", &right));
    assert_eq!(made.code, Some(0), "{made:?}");

    let bare = run(&mut doctor(&place, &[]));
    assert_eq!(bare.code, Some(1), "{bare:?}");
    is(&examined(&bare), "master key", "failed", "none is given");
    is(&examined(&bare), "settings", "failed", "refused in production");
    let other = run(doctor(&place, &[]).env("SVC_SERVER_MASTER_KEY", &wrong));
    is(&examined(&other), "master key", "failed", "another one");
    let nonsense = run(doctor(&place, &[]).env("SVC_SERVER_MASTER_KEY", "nonsense"));
    is(&examined(&nonsense), "master key", "failed", "32 bytes");
    let proxied = ["--trusted-proxy", "10.0.0.0/8", "--public-url", "https://127.0.0.1:1"];
    let sound = run(doctor(&place, &proxied).env("SVC_SERVER_MASTER_KEY", &right));
    assert_eq!(sound.code, Some(0), "{sound:?}");
    is(&examined(&sound), "master key", "ok", "goes by");
    is(&examined(&sound), "settings", "ok", "production");
    for ran in [bare, other, sound] {
        assert!(!format!("{ran:?}").contains(&right), "the key is told");
    }
}

#[test]
fn a_certificate_is_looked_at_with_its_key_and_its_end() {
    let place = Place::sqlite();
    let (cert, key) = (place.folder.path("cert.pem"), place.folder.path("key.pem"));
    let pair = KeyPair::generate().expect("a key");
    let write = |until: (i32, u8, u8)| {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        let made = params.self_signed(&pair).expect("a certificate");
        std::fs::write(&cert, made.pem()).expect("it can be written");
        std::fs::write(&key, pair.serialize_pem()).expect("it can be written");
    };
    let look = || examined(&run(&mut doctor(&place, &["--tls-cert", &cert, "--tls-key", &key])));
    write((2096, 1, 1));
    is(&look(), "certificate", "ok", "good for");
    is(&look(), "private key", "ok", "fits");
    is(&look(), "key file", "warning", "everybody");
    let looked_at_as = |url: &str| {
        let of = ["--tls-cert", &cert, "--tls-key", &key, "--public-url", url];
        examined(&run(&mut doctor(&place, &of)))
    };
    // Nobody is there, and it is not far to find out.
    is(&looked_at_as("https://localhost:1"), "certificate's name", "ok", "localhost");
    for other in ["127.0.0.1", "[::1]"] {
        let told = looked_at_as(&format!("https://{other}:1"));
        is(&told, "certificate's name", "failed", &format!("not for {other}"));
    }
    let soon = svc_service::app::Clock::system().now().to_zoned(jiff::tz::TimeZone::UTC);
    let soon = soon.date().saturating_add(jiff::Span::new().days(10));
    let part = |number: i8| u8::try_from(number).expect("months and days are not negative");
    write((soon.year().into(), part(soon.month()), part(soon.day())));
    is(&look(), "certificate", "warning", "ends in 9 days");
    write((2021, 1, 1));
    is(&look(), "certificate", "failed", "ended at 2021-01-01");
    let other = KeyPair::generate().expect("a key");
    std::fs::write(&key, other.serialize_pem()).expect("it can be written");
    assert_eq!(told(&look(), "private key").0, "failed");
    std::fs::write(&cert, "nonsense").expect("it can be written");
    is(&look(), "certificate", "failed", "no certificate");
}

#[test]
fn a_proxy_that_is_everybody_is_warned_of() {
    let place = Place::sqlite();
    let look = |net: &str| examined(&run(&mut doctor(&place, &["--trusted-proxy", net])));
    is(&look("0.0.0.0/0"), "trusted proxies", "warning", "everybody");
    is(&look("::/0"), "trusted proxies", "warning", "everybody");
    let checks = look("10.0.0.0/8");
    let checks = checks["checks"].as_array().expect("a list");
    assert!(checks.iter().all(|check| check["id"] != "trusted proxies"), "{checks:?}");
}

#[test]
fn an_address_that_leads_elsewhere_and_names_that_are_not_found_are_told() {
    let place = Place::sqlite();
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
    let stranger = Receiver::start(|_| (200, "ready\n".to_owned()));
    let url = stranger.url().replace("/api/svc/webhook", "");
    let away =
        ["--public-url", &url, "--webhook-dns", "127.0.0.1:1", "--dns-name", "shop.example.ao"];
    let arguments =
        ["doctor", "--json", "--database", &place.database, "--private-webhook-targets"];
    let ran = run(svc(&arguments).args(away));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report = examined(&ran);
    is(&report, "public url", "failed", "is something else");
    is(&report, "dns", "failed", "shop.example.ao was not found");
    is(&report, "webhook guard", "warning", "private addresses");
    let nobody = run(&mut doctor(&place, &["--public-url", "http://127.0.0.1:1"]));
    is(&examined(&nobody), "public url", "warning", "cannot be reached");
}

#[test]
fn settings_that_cannot_be_read_end_with_2() {
    let place = Place::sqlite();
    let ran = run(&mut doctor(&place, &["--config", &place.folder.path("absent.toml")]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("cannot read the settings file"), "{ran:?}");
}
