//! `svc completions` and `svc man`: for every command there is, and of nobody's environment.

use std::process::Command;

use crate::support::{Folder, run, svc};

const COMMANDS: [&str; 6] = ["check", "listen", "verify", "doctor", "seed", "serve"];

#[test]
fn every_shell_knows_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(svc(&["completions", shell]).env("SVC_CLIENT_ID", "canary-id"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for command in COMMANDS {
            assert!(ran.stdout.contains(command), "{shell} does not know {command}");
        }
        assert!(!ran.stdout.contains("canary-id"), "the environment is told to {shell}");
        if shell == "bash" {
            let path = folder.path("svc.bash");
            std::fs::write(&path, &ran.stdout).expect("it can be written");
            assert_eq!(run(Command::new("bash").args(["-n", &path])).code, Some(0));
        }
    }
    let other = run(&mut svc(&["completions", "csh"]));
    assert_eq!(other.code, Some(2), "{other:?}");
}

#[test]
fn every_command_has_its_page() {
    let folder = Folder::new();
    let pages = folder.path("man");
    let absent = run(&mut svc(&["man", &pages]));
    absent.refused(&format!("there is no directory {pages}: mkdir -p {pages}"));
    std::fs::create_dir(&pages).expect("it can be made");
    let ran = run(svc(&["man", &pages]).env("SVC_CLIENT_ID", "canary-id"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for command in COMMANDS {
        let page = std::fs::read_to_string(format!("{pages}/svc-{command}.1")).expect("its page");
        assert!(page.contains(".SH SYNOPSIS") && !page.contains("canary-id"), "{page}");
    }
    let check = std::fs::read_to_string(format!("{pages}/svc-check.1")).expect("its page");
    assert!(check.contains("status\\-url"), "its options are there: {check}");
    std::fs::write(folder.path("file"), "").expect("it can be written");
    run(&mut svc(&["man", &folder.path("file")])).refused("there is no directory");
}
