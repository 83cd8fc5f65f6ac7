//! `svc check`: a sound handler gets the full score, and each broken one is caught and named.

use serde_json::Value;

use crate::support::backend::{self, Backend};
use crate::support::handler::{self, Handler, SECRET, Shop};
use crate::support::{Folder, Place, Ran, Service, run, svc};

/// Grades a shop that has the endpoints of spec 4.6.
fn grade(shop: &str, secret: &str, cart: &str, more: &[&str]) -> Ran {
    let webhook = format!("{shop}/api/svc/webhook");
    let status = format!("{shop}/api/svc/order/{{externalTransactionId}}/status");
    let create = format!("{shop}/api/svc/create-order");
    let mut command = svc(&["check", &webhook, "--status-url", &status, "--create-url", &create]);
    run(command.args(["--create-body", cart]).args(more).env("SVC_WEBHOOK_SECRET", secret))
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|fault| panic!("{fault}: {ran:?}"))
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id")).collect()
}

fn failed(report: &Value) -> Vec<&str> {
    let cases = report["cases"].as_array().expect("a list");
    let failed = cases.iter().filter(|case| case["verdict"] == "failed");
    failed.map(|case| case["id"].as_str().expect("an id")).collect()
}

fn full_score(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = report(ran);
    assert_eq!(
        (&report["passed"], &report["failed"], &report["notRun"], &report["effectSeen"]),
        (&29.into(), &0.into(), &0.into(), &true.into()),
        "{report}"
    );
    assert!(ids(&report["findings"]).is_empty(), "{report}");
    // The effect was looked at, not only asked for.
    assert_eq!(report["cases"][0]["state"], "CON", "{report}");
}

#[test]
fn the_reference_shop_gets_the_full_score() {
    let folder = Folder::new();
    let data = folder.path("demo");
    let demo =
        Service::start(&mut svc(&["demo", "--json", "--listen", "127.0.0.1:0", "--data", &data]));
    let ready = demo.ready();
    let text = |key: &str| ready[key].as_str().expect("it is text");
    let cart = r#"{"items":[{"id":"livro-receitas","quantity":1}]}"#;
    full_score(&grade(text("shopUrl"), text("webhookSecret"), cart, &["--json"]));
}

#[expect(clippy::print_stderr, reason = "whoever reads the tests' output should know")]
fn example(program: &str, file: &str, arguments: &[&str]) {
    if !backend::is_installed(program) {
        eprintln!("skipped: {program} is not installed");
        return;
    }
    let place = Place::sqlite();
    let backend = Backend::start(&place, program, file, arguments);
    let secret = &backend.variables.iter().find(|(name, _)| *name == "SVC_WEBHOOK_SECRET");
    let (_, secret) = secret.expect("it is there");
    let cart = r#"{"items":[{"id":"livro-receitas","quantity":1}]}"#;
    full_score(&grade(&backend.shop, secret, cart, &["--json"]));
}

#[test]
fn the_example_in_node_gets_the_full_score() {
    example("node", "node/server.mjs", &["server.mjs"]);
}

#[test]
fn the_example_in_python_gets_the_full_score() {
    example("python3", "python/server.py", &["server.py"]);
}

#[test]
fn the_example_in_php_gets_the_full_score() {
    example("php", "php/index.php", &["-S", "127.0.0.1:{port}", "index.php"]);
}

#[test]
fn the_sound_handler_of_these_tests_gets_the_full_score_and_is_counted() {
    let shop = Shop::open(Handler::sound());
    let ran = grade(&shop.url(), SECRET, "{}", &["--json"]);
    full_score(&ran);
    assert_eq!(report(&ran)["fulfilmentsCounted"], true);
}

#[test]
fn a_handler_that_checks_the_other_signature_gets_the_full_score() {
    let shop = Shop::open(Handler { standard: true, ..Handler::sound() });
    full_score(&grade(&shop.url(), SECRET, "{}", &["--json"]));
}

/// The check must fail exactly these cases and name exactly these faults.
fn caught(handler: Handler, findings: &[&str], cases: &[&str]) {
    let shop = Shop::open(handler);
    let ran = grade(&shop.url(), SECRET, "{}", &["--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report = report(&ran);
    assert_eq!((ids(&report["findings"]), failed(&report)), (findings.to_vec(), cases.to_vec()));
}

macro_rules! broken_handlers {
    ($($name:ident: $quirk:expr, $findings:expr, $cases:expr;)*) => {
        $(#[test]
        fn $name() {
            let quirk: fn(&mut Handler) = $quirk;
            let mut handler = Handler::sound();
            quirk(&mut handler);
            caught(handler, &$findings, &$cases);
        })*
    };
}

const FORGED: [&str; 14] = [
    "missing-signature",
    "empty-signature",
    "short-signature",
    "long-signature",
    "not-hex",
    "half-right",
    "upper-case",
    "sha256-prefix",
    "base64",
    "other-secret",
    "changed-body",
    "re-encoded-body",
    "added-line-break",
    "unsigned-not-json",
];

/// Not a single case gets through to the handler.
fn locked_out() -> [&'static str; 15] {
    std::array::from_fn(|index| index.checked_sub(1).map_or("valid", |index| FORGED[index]))
}

broken_handlers! {
    one_that_accepts_everything: |h| h.verify = |_, _| true, ["accepts-anything"], FORGED;
    one_that_compares_only_the_beginning: |h| h.verify = |given, expected| {
        given.as_bytes().get(..32) == expected.as_bytes().get(..32)
    }, ["compares-a-part"], ["short-signature", "long-signature", "half-right"];
    one_that_lets_the_given_part_decide: |h| h.verify = |given, expected| {
        expected.starts_with(given)
    }, ["accepts-missing-signature", "compares-a-part"],
        ["missing-signature", "empty-signature", "short-signature"];
    one_that_checks_only_what_is_there: |h| h.verify = |given, expected| {
        given.is_empty() || given == expected
    }, ["accepts-missing-signature"], ["missing-signature", "empty-signature"];
    one_that_ignores_case: |h| h.verify = |given, expected| {
        given.eq_ignore_ascii_case(expected)
    }, ["ignores-case"], ["upper-case"];
    one_that_takes_off_a_prefix: |h| h.verify = |given, expected| {
        given.trim_start_matches("sha256=") == expected
    }, ["accepts-other-notation"], ["sha256-prefix"];
    one_that_hashes_json_written_again: |h| h.bytes = handler::compact,
        ["re-encoded-json"], ["odd-format", "re-encoded-body", "added-line-break"];
    one_that_hashes_json_as_python_writes_it: |h| h.bytes = handler::spaced,
        ["re-encoded-json"], ["valid"];
    one_that_hashes_json_with_sorted_keys: |h| h.bytes = handler::sorted,
        ["re-encoded-json"], ["valid"];
    one_that_trims_the_body: |h| h.bytes = |body| body.trim_ascii().to_vec(),
        ["line-break-removed"], ["odd-format", "added-line-break"];
    one_that_hashes_a_line_break_too: |h| h.bytes = |body| [body, b"\n"].concat(),
        ["line-break-added"], ["valid"];
    one_with_another_secret: |h| h.secret = || b"whsec_of another application, or of production".to_vec(),
        ["wrong-secret"], ["valid"];
    one_whose_secret_ends_in_a_line_break: |h| h.secret = || format!("{SECRET}\n").into_bytes(),
        ["secret-with-line-break"], ["valid"];
    one_whose_secret_is_in_quotes: |h| h.secret = || format!("\"{SECRET}\"").into_bytes(),
        ["secret-quoted"], ["valid"];
    one_that_decodes_the_secret: |h| h.secret = handler::decoded, ["secret-decoded"], ["valid"];
    one_that_cuts_off_the_prefix_of_the_secret: |h| h.secret = || SECRET.as_bytes()[6..].to_vec(),
        ["secret-without-prefix"], ["valid"];
    one_without_a_secret: |h| h.secret = Vec::new, ["secret-empty"], ["valid"];
    one_that_wants_base64: |h| h.verify = handler::is_base64_of,
        ["expects-base64"], ["valid", "base64"];
    one_that_applies_whatever_comes: |h| h.apply = |order, status| order.status = status.to_owned(),
        ["overwrites-final-state", "acts-on-unknown-event"],
        ["can-after-con", "pen-after-con", "con-after-can", "unknown-status"];
    one_that_fulfils_again: |h| h.apply = |order, status| {
        if status == "CON" && order.status != "CAN" {
            order.status = "CON".into();
            order.fulfilments += 1;
        }
        handler::settle(order, status);
    }, ["fulfils-twice"], ["duplicate", "can-after-con", "pen-after-con", "parallel-duplicates"];
    one_that_reads_and_writes_without_a_lock: |h| h.locks = false,
        ["fulfils-twice"], ["parallel-duplicates"];
    one_that_parses_before_it_verifies: |h| h.parses_first = true,
        ["parses-before-verifying", "breaks-on-bad-json"], ["signed-not-json", "unsigned-not-json"];
    one_that_acts_before_it_verifies: |h| h.acts_first = true, ["acts-despite-refusal"], FORGED[..13];
    one_that_swallows_what_it_cannot_read: |h| h.unreadable = 200,
        ["swallows-bad-json"], ["signed-not-json"];
    one_that_answers_after_six_seconds: |h| h.works_before_it_answers = true, ["slow"], ["in-time"];
    one_that_answers_404_for_unknown_orders: |h| h.unknown = 404,
        ["refuses-unknown-order"], ["unknown-order"];
    one_that_makes_orders_up: |h| h.makes_orders_up = true, ["makes-up-orders"], ["unknown-order"];
    one_that_refuses_repetitions: |h| h.settled = 409, ["refuses-duplicates", "fails-in-parallel"],
        ["duplicate", "can-after-con", "pen-after-con", "con-after-can", "parallel-duplicates"];
    one_that_does_not_look_at_the_amount: |h| h.holds_other_amounts = false,
        ["ignores-amount"], ["other-amount"];
    one_that_forgets: |h| h.apply = |_, _| {}, ["no-effect"],
        ["valid", "cancelled", "parallel-duplicates", "odd-format"];
    one_that_does_not_look_at_the_event: |h| h.looks_at_event = false,
        ["acts-on-unknown-event"], ["unknown-event"];
    one_that_forbids_instead: |h| h.refused = 403, ["refuses-without-401"], FORGED;
    one_that_redirects: |h| h.instead = Some(308), ["redirects"], locked_out();
    one_at_another_address: |h| h.instead = Some(404), ["not-found"], locked_out();
    one_that_always_breaks: |h| h.instead = Some(500), ["breaks"], locked_out();
}
