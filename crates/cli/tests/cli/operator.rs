//! `svc operator`: who may sign in to the console, while the service runs and while it is stopped.

use serde_json::Value;

use crate::support::http::{call, get};
use crate::support::{Place, Service};

on_both_engines! {
    somebody_is_created_invited_disabled_and_enabled,
    a_link_signs_in_while_the_service_runs_and_a_disabled_person_is_out,
    what_is_wrong_is_told_with_exit_code_1,
}

fn link(place: &Place, arguments: &[&str], base_url: &str) -> String {
    let told = place.svc(&[arguments, &["--url", base_url, "--json"]].concat()).json();
    let url = told["url"].as_str().expect("a link").to_owned();
    url.strip_prefix(base_url).expect("the link begins with the URL").to_owned()
}

fn states(place: &Place, more: &[&str]) -> Vec<(String, String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let rows = place.svc(&[&["operator", "list", "--json"], more].concat()).json();
    let rows = rows.as_array().expect("rows").clone();
    rows.iter().map(|row| (text(row, "login"), text(row, "role"), text(row, "state"))).collect()
}

fn row(login: &str, role: &str, state: &str) -> (String, String, String) {
    (login.to_owned(), role.to_owned(), state.to_owned())
}

fn somebody_is_created_invited_disabled_and_enabled(place: &Place) {
    let client = place.partner()["clientId"].as_str().expect("an id").to_owned();
    let base = "https://pay.example.ao";
    let first = link(place, &["operator", "create", "Ana"], base);
    assert!(first.starts_with("/console/welcome/") && first.len() > 50, "{first}");
    let of_partner =
        ["operator", "create", "rui@loja.ao", "--partner", &client, "--role", "reader"];
    link(place, &of_partner, base);
    assert_eq!(states(place, &[]), [row("ana", "owner", "invited")]);
    assert_eq!(states(place, &["--partner", &client]), [row("rui@loja.ao", "reader", "invited")]);
    assert_ne!(link(place, &["operator", "invite", "ana"], base), first);
    for (verb, state) in [("disable", "disabled"), ("enable", "invited")] {
        assert_eq!(place.svc(&["operator", verb, "ana"]).code, Some(0), "{verb}");
        assert_eq!(states(place, &[]), [row("ana", "owner", state)]);
    }
    let plain = place.svc(&["operator", "list"]);
    assert!(plain.stdout.starts_with("LOGIN") && plain.stdout.contains("ana"), "{plain:?}");
    let plain = place.svc(&["operator", "create", "olga"]);
    assert_eq!(plain.stdout.lines().count(), 1, "only the link: {plain:?}");
    assert!(plain.stdout.starts_with("http://127.0.0.1:8080/console/welcome/"), "{plain:?}");
}

/// GET with a cookie.
fn status(service: &Service, cookie: &str) -> u16 {
    let headers = format!("cookie: {cookie}\r\n");
    call(&service.base_url(), "GET /console", &headers, "").expect("the server answers").status
}

fn a_link_signs_in_while_the_service_runs_and_a_disabled_person_is_out(place: &Place) {
    let service = place.serve();
    let base_url = service.base_url();
    let path = link(place, &["operator", "create", "ana"], &base_url);
    assert_eq!(get(&base_url, &path).status, 200);
    let headers = "content-type: application/x-www-form-urlencoded\r\n\
                   sec-fetch-site: same-origin\r\n";
    let form = "password=uma+senha+bastante+longa&again=uma+senha+bastante+longa";
    let answer = call(&base_url, &format!("POST {path}"), headers, form).expect("an answer");
    assert_eq!(answer.status, 303, "{answer:?}");
    let cookie = answer.header("set-cookie").and_then(|set| set.split(';').next());
    let cookie = cookie.expect("a session").to_owned();
    assert_eq!((status(&service, &cookie), get(&base_url, &path).status), (200, 404));
    assert_eq!(states(place, &[]), [row("ana", "owner", "active")]);
    assert_eq!(place.svc(&["operator", "disable", "ana"]).code, Some(0));
    assert_eq!(status(&service, &cookie), 303, "out at once");
    place.svc(&["operator", "invite", "ana"]).refused("ana is disabled: enable them first");
    assert_eq!(place.svc(&["operator", "enable", "ana"]).code, Some(0));
    let again = link(place, &["operator", "invite", "ana"], &base_url);
    assert_eq!((status(&service, &cookie), get(&base_url, &again).status), (303, 200));
    assert_eq!(place.svc(&["operator", "disable", "ana"]).code, Some(0));
    assert_eq!(get(&base_url, &again).status, 404, "while disabled no link helps");
}

fn what_is_wrong_is_told_with_exit_code_1(place: &Place) {
    place.partner();
    place.svc(&["operator", "create", "ana", "--json"]).json();
    for (arguments, told) in [
        (&["create", "ana"][..], "a person with this login"),
        (&["create", "a b"], "a login is 2 to 100"),
        (&["create", "rui", "--partner", "svc_nobody"], "no partner svc_nobody"),
        (&["invite", "nobody"], "the login"),
        (&["disable", "nobody"], "nobody signs in as nobody"),
        (&["enable", "nobody"], "nobody signs in as nobody"),
        (&["list", "--partner", "svc_nobody"], "no partner svc_nobody"),
    ] {
        place.svc(&[&["operator"], arguments].concat()).refused(told);
    }
    let king = place.svc(&["operator", "create", "rui", "--role", "king"]);
    assert_eq!(king.code, Some(2), "{king:?}");
    assert!(
        king.stderr.contains("[possible values: owner, developer, support, reader]"),
        "{king:?}"
    );
    assert_eq!(states(place, &[]), [row("ana", "owner", "invited")]);
}
