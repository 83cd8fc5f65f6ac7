//! `svc check`: what it prints, in three languages and three forms, and when it refuses to run.

use std::process::Command;

use serde_json::Value;

use crate::support::handler::{Handler, SECRET, Shop};
use crate::support::http::call;
use crate::support::{Folder, Ran, run, svc};

fn check(shop: &Shop, arguments: &[&str]) -> Command {
    let mut command = svc(&["check", &format!("{}/api/svc/webhook", shop.url())]);
    command.args(arguments).env("SVC_WEBHOOK_SECRET", SECRET).env("LC_ALL", "C");
    command
}

fn status_url(shop: &Shop) -> String {
    format!("{}/api/svc/order/{{externalTransactionId}}/status", shop.url())
}

fn create_url(shop: &Shop) -> String {
    format!("{}/api/svc/create-order", shop.url())
}

/// Exit code 2 and a sentence that holds `part`.
fn could_not_run(ran: &Ran, part: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains(part), "{part:?} is not told: {ran:?}");
}

#[test]
fn the_table_is_in_the_language_that_is_asked_for_or_that_the_terminal_speaks() {
    let shop = Shop::open(Handler { verify: |_, _| true, ..Handler::sound() });
    let texts = [
        ("pt", "pt_AO.UTF-8", "qualquer assinatura", "14 falharam"),
        ("en", "en_GB.UTF-8", "accepts any signature", "14 failed"),
        ("fr", "fr_FR.UTF-8", "n'importe quelle signature", "14 échoués"),
    ];
    for (lang, locale, finding, verdict) in texts {
        let asked = run(check(&shop, &["--lang", lang]).env("LC_ALL", "C"));
        let spoken = run(check(&shop, &[]).env_remove("LC_ALL").env("LANG", locale));
        for ran in [asked, spoken] {
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(ran.stdout.contains(finding) && ran.stdout.contains(verdict), "{ran:?}");
            assert!(!ran.stdout.contains('\x1b'), "no colour in a file: {ran:?}");
        }
    }
}

#[test]
fn without_a_status_url_it_says_that_no_effect_was_seen() {
    let shop = Shop::open(Handler { apply: |_, _| {}, ..Handler::sound() });
    let ran = run(&mut check(&shop, &[]));
    assert_eq!(ran.code, Some(0), "a handler that forgets answers well: {ran:?}");
    assert!(ran.stdout.contains("Effect not seen"), "{ran:?}");
    assert!(ran.stdout.contains("not seen\n"), "every line says so: {ran:?}");
    let made = run(&mut check(&shop, &["--create-url", &create_url(&shop)]));
    assert!(
        made.stdout.contains("--create-url made the orders, but without --status-url"),
        "{made:?}"
    );
    let json = run(&mut check(&shop, &["--json"])).json();
    assert_eq!((&json["effectSeen"], &json["passed"]), (&false.into(), &29.into()), "{json}");
}

#[test]
fn what_is_not_counted_and_which_secrets_differ_is_told() {
    let shop = Shop::open(Handler::sound());
    let (status, create) = (status_url(&shop), create_url(&shop));
    let urls = ["--status-url", &status, "--create-url", &create, "--count-field", "sent.times"];
    let told = run(&mut check(&shop, &urls)).stdout;
    assert!(told.contains("not counted: the status has no field sent.times."), "{told}");
    let other = SECRET.replace("c3Zj", "bmV3");
    let told = run(check(&shop, &[]).env("SVC_WEBHOOK_SECRET", other)).stdout;
    assert!(told.contains("Your handler and this shell have different secrets"), "{told}");
}

#[test]
fn a_junit_file_has_a_case_for_each_and_a_failure_for_what_failed() {
    let (shop, folder) = (Shop::open(Handler { unknown: 404, ..Handler::sound() }), Folder::new());
    let path = folder.path("report.xml");
    let (status, create) = (status_url(&shop), create_url(&shop));
    let arguments = ["--junit", &path, "--status-url", &status, "--create-url", &create];
    assert_eq!(run(&mut check(&shop, &arguments)).code, Some(1));
    let xml = std::fs::read_to_string(path).expect("it was written");
    assert!(xml.contains(r#"tests="29" failures="1" skipped="0""#), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), 29, "{xml}");
    let (_, failure) = xml.split_once(r#"name="unknown-order: unknown order""#).expect("the case");
    assert!(failure.lines().next().is_some_and(|line| line.contains("answered 404")), "{xml}");
}

#[test]
fn orders_can_be_given_instead_of_made() {
    let shop = Shop::open(Handler::sound());
    let create = || {
        let answer = call(&shop.url(), "POST /api/svc/create-order", "", "{}").expect("an answer");
        answer.json()["externalTransactionId"].as_str().expect("an id").to_owned()
    };
    let orders: Vec<String> = (0..6).map(|_| create()).collect();
    let given: Vec<&str> = orders.iter().flat_map(|id| ["--order", id]).collect();
    let status = status_url(&shop);
    let arguments = [&["--json", "--status-url", &status][..], &given].concat();
    let report: Value = run(&mut check(&shop, &arguments)).json();
    assert_eq!((&report["passed"], &report["effectSeen"]), (&29.into(), &true.into()), "{report}");
    // They are used up now.
    could_not_run(&run(&mut check(&shop, &arguments)), "is CON already");
    let few = [&["--status-url", &status][..], &given[..8]].concat();
    could_not_run(&run(&mut check(&shop, &few)), "6 pending orders");
}

#[test]
fn what_keeps_it_from_running_is_told_and_is_no_verdict() {
    let shop = Shop::open(Handler::sound());
    let refused =
        |arguments: &[&str], part| could_not_run(&run(&mut check(&shop, arguments)), part);
    refused(&["--status-url", &status_url(&shop)], "--create-url URL");
    refused(&["--status-url", "http://127.0.0.1:1/status"], "{externalTransactionId}");
    let nobody = ["--create-url", "http://127.0.0.1:1/create", "--status-url", &status_url(&shop)];
    refused(&nobody, "cannot be asked");
    let field = ["--status-field", "amount", "--status-url", &status_url(&shop)];
    let create = create_url(&shop);
    refused(&[&field[..], &["--create-url", &create]].concat(), "--status-field");

    could_not_run(
        &run(check(&shop, &[]).env_remove("SVC_WEBHOOK_SECRET")),
        "is not set, or not exported",
    );
    for (wrong, told) in
        [("", "is empty"), ("whsec_1", "too short"), (&SECRET[6..], "begins with whsec_")]
    {
        could_not_run(&run(check(&shop, &[]).env("SVC_WEBHOOK_SECRET", wrong)), told);
    }
    let mut away = svc(&["check", "http://127.0.0.1:1/webhook"]);
    could_not_run(&run(away.env("SVC_WEBHOOK_SECRET", SECRET)), "start it");
    let mut foreign = svc(&["check", "https://shop.example.ao/api/svc/webhook"]);
    could_not_run(&run(foreign.env("SVC_WEBHOOK_SECRET", SECRET)), "--remote-test-system");
}

#[test]
fn the_secret_is_read_from_a_file_and_printed_nowhere() {
    let (shop, folder) =
        (Shop::open(Handler { verify: |_, _| false, ..Handler::sound() }), Folder::new());
    let (file, junit) = (folder.path("secret"), folder.path("report.xml"));
    std::fs::write(&file, format!("{SECRET}\n")).expect("it can be written");
    for json in [&["--json"][..], &[]] {
        let arguments = [&["--secret-file", &file, "--junit", &junit][..], json].concat();
        let ran = run(check(&shop, &arguments).env_remove("SVC_WEBHOOK_SECRET"));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let xml = std::fs::read_to_string(&junit).expect("it was written");
        for text in [&ran.stdout, &ran.stderr, &xml] {
            assert!(!text.contains(&SECRET[6..]), "the secret is in {text}");
        }
    }
    std::fs::remove_file(&file).expect("nobody finds it later");
}
