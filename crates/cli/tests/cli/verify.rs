//! `svc verify`: a signature explained, from outside.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Folder, run, svc};

/// The example of docs/webhooks.md.
const SECRET: &str = "whsec_c3ZjLWRvY3MtZXhhbXBsZS1rZXktMzItYnl0ZXMhISE=";
const BODY: &str = r#"{"event":"payment","data":{"externalTransactionId":"order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff","paymentStatus":"CON","referenceNumber":"01JC4E9V7Q3M8Y5T2K6R1N0WXZ","amount":15000}}"#;
const SIGNATURE: &str = "6cb446cc99c823effa8c1e8b3ae792e57f0b39914f6a06fcda47e435b672f250";

fn verify(folder: &Folder, body: &str, arguments: &[&str]) -> Command {
    let path = folder.path("body.json");
    std::fs::write(&path, body).expect("it can be written");
    let mut command = svc(&["verify", &path]);
    command.args(arguments).env("SVC_WEBHOOK_SECRET", SECRET).env("LC_ALL", "C");
    command
}

#[test]
fn a_signature_that_fits_ends_with_0_in_three_languages() {
    let folder = Folder::new();
    for (lang, word) in [("pt", "Válida"), ("en", "Valid"), ("fr", "Valide")] {
        let ran = run(&mut verify(&folder, BODY, &["--signature", SIGNATURE, "--lang", lang]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with(word), "{ran:?}");
    }
}

#[test]
fn one_of_the_previous_secret_is_valid_and_told_as_such() {
    let (folder, newer) = (Folder::new(), SECRET.replace("c3Zj", "bmV3"));
    let mut command = verify(&folder, BODY, &["--signature", SIGNATURE]);
    let ran = run(command.env("SVC_WEBHOOK_SECRET", &newer));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ran = run(command.env("SVC_WEBHOOK_SECRET_PREVIOUS", SECRET));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("with the previous secret"), "{ran:?}");
}

#[test]
fn one_that_does_not_fit_ends_with_1_and_says_why_in_three_languages() {
    let folder = Folder::new();
    let upper = SIGNATURE.to_uppercase();
    let saved = format!("{BODY}\n");
    for (body, signature, lang, part) in [
        (BODY, upper.as_str(), "pt", "maiúsculas"),
        (BODY, &upper, "en", "upper case"),
        (BODY, &upper, "fr", "majuscules"),
        (&saved, SIGNATURE, "en", "do not trim it"),
        (BODY, &SIGNATURE[..60], "en", "60 characters"),
    ] {
        let ran = run(&mut verify(&folder, body, &["--signature", signature, "--lang", lang]));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
        assert!(!format!("{ran:?}").contains(&SECRET[6..]), "the secret is told");
    }
    let ran = run(&mut verify(&folder, BODY, &["--signature", &upper, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, &json["reasons"][0]["id"]), (Some(1), &"upper-case".into()), "{json}");
}

#[test]
fn the_body_comes_from_stdin_byte_by_byte() {
    let mut command = svc(&["verify", "--signature", SIGNATURE]);
    command.env("SVC_WEBHOOK_SECRET", SECRET).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it can be run");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(BODY.as_bytes()).expect("it reads");
    drop(stdin);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn what_cannot_be_looked_at_ends_with_2() {
    let folder = Folder::new();
    let mut without = verify(&folder, BODY, &["--signature", SIGNATURE]);
    let ran = run(without.env_remove("SVC_WEBHOOK_SECRET"));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("SVC_WEBHOOK_SECRET is not set"), "{ran:?}");
    let mut absent = svc(&["verify", &folder.path("absent"), "--signature", SIGNATURE]);
    let ran = run(absent.env("SVC_WEBHOOK_SECRET", SECRET));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("cannot read"), "{ran:?}");
}
