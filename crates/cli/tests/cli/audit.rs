//! `svc audit`: a history that nobody touched is intact, and one that somebody touched is not.

use serde_json::Value;

use crate::support::{Place, run, svc};

on_both_engines! {
    a_new_history_is_intact,
    the_list_names_who_did_what,
    a_seal_that_is_none_is_told,
}

/// A history with a few rows of ours, sealed.
fn sealed() -> (Place, String) {
    let place = Place::sqlite();
    place.partner();
    for login in ["ana", "rui", "olga"] {
        place.svc(&["operator", "create", login, "--json"]).json();
    }
    let head = place.svc(&["audit", "head"]);
    assert_eq!(head.code, Some(0), "{head:?}");
    (place, head.stdout.trim().to_owned())
}

/// Straight SQL, past the service.
fn tamper(place: &Place, statement: &str) {
    let file = place.database.strip_prefix("sqlite:").expect("a file");
    let db = rusqlite::Connection::open(file).expect("the database can be opened");
    db.execute_batch(statement).expect("the statement is right");
}

fn verify(place: &Place, more: &[&str]) -> (Option<i32>, Value, String) {
    let ran = place.svc(&[&["audit", "verify", "--json"], more].concat());
    let report = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    (ran.code, report, ran.stderr)
}

fn a_new_history_is_intact(place: &Place) {
    place.partner();
    let (code, report, _) = verify(place, &[]);
    assert_eq!((code, &report["intact"]), (Some(0), &Value::from(true)), "{report}");
    assert!(report["unsealed"].as_i64() > Some(0), "nothing is sealed yet: {report}");
    let plain = place.svc(&["audit", "verify"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(plain.stdout.contains("not sealed yet"), "{plain:?}");
}

#[test]
fn an_untouched_history_is_intact_and_reaches_the_seal_that_was_kept() {
    let (place, head) = sealed();
    let (code, report, _) = verify(&place, &["--head", &head]);
    assert_eq!((code, &report["intact"]), (Some(0), &Value::from(true)), "{report}");
    assert_eq!((&report["head"], &report["unsealed"]), (&Value::from(head), &Value::from(0)));
    assert_eq!(report["faults"], Value::Array(vec![]));
}

/// Every kind of change is tried in the service's console/history.rs.
#[test]
fn a_change_ends_with_exit_code_1_and_names_the_rows() {
    for statement in [
        "update audit set actor = 'operator:eve' where id = 2",
        "update audit set id = -1 where id = 2; update audit set id = 2 where id = 3;
         update audit set id = 3 where id = -1",
    ] {
        let (place, _) = sealed();
        tamper(&place, statement);
        let (code, report, told) = verify(&place, &[]);
        assert_eq!((code, &report["intact"]), (Some(1), &Value::from(false)), "{statement}");
        let fault = report["faults"][0].as_str().expect("a sentence");
        assert!(fault.starts_with("rows 1 to "), "{statement}: {fault}");
        assert!(
            told.contains("the history is not as it was sealed (1 found)"),
            "{statement}: {told}"
        );
        let plain = place.svc(&["audit", "verify"]);
        assert_eq!(plain.code, Some(1), "{statement}");
        assert!(plain.stdout.contains(fault), "{plain:?}");
    }
}

#[test]
fn a_history_that_was_cut_off_is_found_by_the_seal_that_was_kept() {
    let (place, head) = sealed();
    tamper(&place, "delete from audit; delete from audit_seals");
    assert_eq!(verify(&place, &[]).0, Some(0), "by itself it looks whole");
    let (code, report, _) = verify(&place, &["--head", &head]);
    assert_eq!(code, Some(1), "{report}");
    assert!(
        report["faults"][0].as_str().is_some_and(|told| told.contains("is not in the history"))
    );
}

#[test]
fn another_master_key_is_refused_before_it_calls_the_history_changed() {
    let (place, _) = sealed();
    let key = place.folder.path("other.key");
    std::fs::write(&key, "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=").expect("a file");
    let mut command = svc(&["audit", "verify", "--database", &place.database]);
    let ran = run(command.env("SVC_SERVER_MASTER_KEY_FILE", &key));
    assert_eq!(ran.code, Some(2), "it could not look: {ran:?}");
    assert!(!ran.stdout.contains("rows 1 to"), "{ran:?}");
}

fn the_list_names_who_did_what(place: &Place) {
    place.partner();
    place.svc(&["operator", "create", "ana", "--json"]).json();
    place.svc(&["operator", "disable", "ana"]);
    let rows = place.svc(&["audit", "list", "--subject", "ana", "--json"]).json();
    let actions: Vec<_> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["actor"].as_str(), row["action"].as_str()))
        .collect();
    let expected = [
        (Some("operator:cli"), Some("person.disable")),
        (Some("operator:cli"), Some("person.invite")),
        (Some("operator:cli"), Some("person.create")),
    ];
    assert_eq!(actions, expected, "newest first");
    let one = place.svc(&["audit", "list", "--limit", "1"]);
    assert_eq!(one.stdout.lines().count(), 2, "a head and a row: {one:?}");
}

fn a_seal_that_is_none_is_told(place: &Place) {
    for head in ["", "12", "x:ff", "1:zz", "1:"] {
        let ran = place.svc(&["audit", "verify", "--head", head]);
        assert_eq!(ran.code, Some(2), "{head}: {ran:?}");
    }
}
