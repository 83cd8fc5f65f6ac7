//! Where settings come from, which wins, and which names are refused.

use std::process::Command;

use crate::support::http::get;
use crate::support::merchant::{Merchant, reference};
use crate::support::{Folder, Place, Service, run, svc};

/// Runs in the folder, so that the default database is in there too.
fn svc_in(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = svc(arguments);
    command.current_dir(folder.path(""));
    command
}

fn exists(folder: &Folder, name: &str) -> bool {
    std::fs::exists(folder.path(name)).expect("the folder can be read")
}

fn write(folder: &Folder, name: &str, text: &str) -> String {
    std::fs::write(folder.path(name), text).expect("the folder can be written");
    folder.path(name)
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let folder = Folder::new();
    let file = write(&folder, "svc.toml", "database = \"sqlite:from-file.db\"\n");
    let with_file = ["migrate", "--config", &file];
    let with_flag = ["migrate", "--config", &file, "--database", "sqlite:from-flag.db"];
    let variable = ("SVC_SERVER_DATABASE", "sqlite:from-variable.db");
    let cases = [
        (svc_in(&folder, &["migrate"]), "svc.db"),
        (svc_in(&folder, &with_file), "from-file.db"),
        (with(svc_in(&folder, &with_file), variable), "from-variable.db"),
        (with(svc_in(&folder, &with_flag), variable), "from-flag.db"),
    ];
    for (mut command, made) in cases {
        assert!(!exists(&folder, made), "{made} is there too early");
        let ran = run(&mut command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(exists(&folder, made), "{made} was not made: {ran:?}");
    }
}

#[test]
fn the_address_to_listen_on_follows_the_same_order() {
    let place = Place::sqlite();
    let text = format!("database = {:?}\nlisten = \"127.0.0.2:0\"\n", place.database);
    let file = write(&place.folder, "svc.toml", &text);
    let serve = || svc(&["serve", "--json", "--config", &file]);
    let variable = ("SVC_SERVER_LISTEN", "127.0.0.3:0");
    let mut flagged = with(serve(), variable);
    flagged.args(["--listen", "127.0.0.4:0"]);
    let cases =
        [(serve(), "127.0.0.2"), (with(serve(), variable), "127.0.0.3"), (flagged, "127.0.0.4")];
    for (mut command, host) in cases {
        let service = Service::start(&mut command);
        assert!(service.base_url().contains(host), "{} is not {host}", service.base_url());
        assert_eq!(get(&service.base_url(), "/livez").status, 200);
    }
}

#[test]
fn a_switch_in_a_variable_beats_the_file_too() {
    let place = Place::sqlite();
    let file = write(&place.folder, "svc.toml", "private_webhook_targets = true\n");
    let serve = |value: Option<&str>| {
        let mut command = place.serving(&["--config", &file]);
        command.envs(value.map(|value| ("SVC_SERVER_PRIVATE_WEBHOOK_TARGETS", value)));
        Service::start(&mut command)
    };
    let credentials = place.partner();
    let status = |service: &Service| {
        let merchant = Merchant::new(service.base_url(), &credentials);
        let url = "http://127.0.0.1:3000/hook";
        merchant.create_with(&merchant.token(), "order-1", url).expect("it answers").status
    };
    assert_eq!(status(&serve(Some("false"))), 422, "the variable says no");
    assert_eq!(status(&serve(None)), 200, "the file says yes");
}

#[test]
fn an_unknown_key_in_the_file_is_refused_by_name() {
    let folder = Folder::new();
    let file = write(&folder, "svc.toml", "listen = \"127.0.0.1:0\"\nlistne = \"0.0.0.0:80\"\n");
    let ran = run(&mut svc_in(&folder, &["serve", "--config", &file]));
    ran.refused("listne");
    ran.refused("svc.toml");
    assert!(!exists(&folder, "svc.db"), "nothing was opened");
}

#[test]
fn a_value_that_is_no_address_is_told_with_its_key_and_how_to_write_it() {
    let folder = Folder::new();
    for (text, told) in [
        (
            "listen = \"localhost:80\"\n",
            "listen is an address and a port, like 127.0.0.1:8080, not",
        ),
        ("\nwebhook_dns = [\"9.9.9.9\"]\n", "line 2: webhook_dns is an address and a port"),
    ] {
        let file = write(&folder, "svc.toml", text);
        run(&mut svc_in(&folder, &["serve", "--config", &file])).refused(told);
    }
}

#[test]
fn an_unknown_variable_is_refused_by_name() {
    let folder = Folder::new();
    let command = svc_in(&folder, &["serve", "--listen", "127.0.0.1:0"]);
    let ran = run(&mut with(command, ("SVC_SERVER_LISTNE", "0.0.0.0:80")));
    ran.refused("SVC_SERVER_LISTNE");
    assert!(!exists(&folder, "svc.db"), "nothing was opened");
}

#[test]
fn the_variables_of_a_merchant_mean_nothing_here() {
    let place = Place::sqlite();
    let mut command = svc(&["partner", "create", "Loja", "--json", "--database", &place.database]);
    for name in ["SVC_CLIENT_ID", "SVC_CLIENT_SECRET", "SVC_WEBHOOK_SECRET", "SVC_BASE_URL"] {
        command.env(name, "belongs-to-the-merchant");
    }
    let ran = run(&mut command);
    assert!(!ran.json().to_string().contains("belongs-to-the-merchant"), "{ran:?}");
}

#[test]
fn the_database_is_read_from_a_file_that_a_variable_names() {
    let folder = Folder::new();
    let secret = write(&folder, "database.txt", "sqlite:from-secret.db\n");
    let named = ("SVC_SERVER_DATABASE_FILE", secret.as_str());
    let ran = run(&mut with(svc_in(&folder, &["migrate"]), named));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(exists(&folder, "from-secret.db"));

    // The list of processes is open to everybody.
    for url in
        ["postgres://svc:geheim@127.0.0.1:9/svc", "postgres://svc@127.0.0.1:9/svc?password=geheim"]
    {
        let warned = run(&mut svc_in(&folder, &["migrate", "--database", url]));
        let variable = ("SVC_SERVER_DATABASE", url);
        let quiet = run(&mut with(svc_in(&folder, &["migrate"]), variable));
        for (ran, told) in [(warned, true), (quiet, false)] {
            assert_eq!(ran.stderr.contains("SVC_SERVER_DATABASE_FILE"), told, "{ran:?}");
            assert!(!format!("{ran:?}").contains("geheim"), "{ran:?}");
        }
    }

    let missing = ("SVC_SERVER_DATABASE_FILE", "nowhere.txt");
    run(&mut with(svc_in(&folder, &["migrate"]), missing)).refused("nowhere.txt");
}

#[test]
fn files_that_the_settings_name_are_looked_for_beside_them() {
    let folder = Folder::new();
    let settings = "database_file = \"database\"\nmaster_key_file = \"key\"\n\
                    other_master_key_file = \"other-key\"\n[[rail]]\nname = \"acquirer\"\n\
                    url = \"http://127.0.0.1:9\"\nsecret_file = \"secret\"\n\
                    other_secret_file = \"other-secret\"\n";
    let file = write(&folder, "svc.toml", settings);
    let database = format!("sqlite:{}", folder.path("named.db"));
    write(&folder, "database", &database);
    for name in ["key", "other-key"] {
        write(&folder, name, &run(&mut svc(&["keygen"])).stdout);
    }
    for name in ["secret", "other-secret"] {
        write(&folder, name, &run(&mut svc(&["keygen", "--rail"])).stdout);
    }
    let elsewhere = Folder::new();
    let ran = run(&mut svc_in(&elsewhere, &["partner", "create", "Loja", "--config", &file]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(exists(&folder, "named.db"));
    // A secret of a test's own goes with it, whatever else is kept.
    for name in ["secret", "other-secret"] {
        std::fs::remove_file(folder.path(name)).expect("it is there");
    }
}

#[test]
fn the_master_key_is_read_from_a_file_that_a_variable_names() {
    let place = Place::sqlite();
    let key = run(&mut svc(&["keygen"])).stdout;
    let file = write(&place.folder, "master.key", &key);
    let create = svc(&["partner", "create", "Loja", "--json", "--database", &place.database]);
    let credentials = run(&mut with(create, ("SVC_SERVER_MASTER_KEY_FILE", &file))).json();

    // Only a service with the same key, however it is given, knows the secret again.
    let serve = |variable| Service::start(&mut with(place.serving(&[]), variable));
    let service = serve(("SVC_SERVER_MASTER_KEY", key.trim()));
    let merchant = Merchant::new(service.base_url(), &credentials);
    reference(&merchant.create(&merchant.token(), "order-1").expect("the server answers"));
    assert_eq!(service.stop().code, Some(0));
}

#[test]
fn another_master_key_is_refused_by_the_service_and_the_commands() {
    let place = Place::sqlite();
    let key = || run(&mut svc(&["keygen"])).stdout.trim().to_owned();
    let (first, second) = (key(), key());
    let create = || svc(&["partner", "create", "Loja", "--json", "--database", &place.database]);
    run(&mut with(create(), ("SVC_SERVER_MASTER_KEY", &first))).json();
    for command in [place.serving(&[]), create()] {
        run(&mut with(command, ("SVC_SERVER_MASTER_KEY", &second))).refused("another master key");
    }
    run(&mut place.serving(&[])).refused("another master key");
}

#[test]
fn a_master_key_takes_over_as_an_operator_goes_through_it() {
    let place = Place::sqlite();
    let key = || run(&mut svc(&["keygen"])).stdout.trim().to_owned();
    let (old, new) = (key(), key());
    let command = |arguments: &[&str], key: &str, other: Option<&str>| {
        let mut command = svc(arguments);
        command.args(["--database", &place.database]).env("SVC_SERVER_MASTER_KEY", key);
        command.envs(other.map(|other| ("SVC_SERVER_OTHER_MASTER_KEY", other)));
        command
    };
    let told = |arguments: &[&str], key: &str, other| run(&mut command(arguments, key, other));
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0"];
    let credentials = told(&["partner", "create", "Loja", "--json"], &old, None).json();

    told(&["rekey"], &old, None).refused("SVC_SERVER_OTHER_MASTER_KEY_FILE");
    told(&["rekey"], &new, Some(&old)).refused("restart the service with both master keys");
    let service = Service::start(&mut command(&serve, &new, Some(&old)));
    assert!(told(&["doctor"], &new, Some(&old)).stdout.contains("run svc rekey"));
    // What every command refuses, doctor does not call well.
    let create = ["partner", "create", "Another"];
    told(&create, &old, None).refused("the service has begun with another master key");
    let examined = told(&["doctor"], &old, None);
    assert!(
        examined.stdout.contains("the service has begun with another one since"),
        "{examined:?}"
    );
    let done = told(&["rekey"], &new, Some(&old));
    assert!(done.stdout.contains("Sealed anew: 1 webhook secrets"), "{done:?}");
    assert!(told(&["doctor"], &new, Some(&old)).stdout.contains("take the other out"));
    assert_eq!(service.stop().code, Some(0));

    let service = Service::start(&mut command(&serve, &new, None));
    let merchant = Merchant::new(service.base_url(), &credentials);
    reference(&merchant.create(&merchant.token(), "order-1").expect("the server answers"));
    let verified = told(&["audit", "verify"], &new, None);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(service.stop().code, Some(0));
    told(&["rekey"], &old, None).refused("another master key");
}

#[test]
fn tokens_of_another_service_open_nothing() {
    let (here, there) = (Place::sqlite(), Place::sqlite());
    let (service, other) = (here.serve(), there.serve());
    let merchant = Merchant::new(service.base_url(), &here.partner());
    let elsewhere = Merchant { base_url: other.base_url(), ..merchant.clone() };
    assert_eq!(elsewhere.query(&merchant.token(), "order-1").status, 401);
    assert_eq!(elsewhere.ask_token().status, 401);
}

#[test]
fn what_is_no_master_key_is_refused_without_repeating_it() {
    let place = Place::sqlite();
    for wrong in ["hunter2-hunter2", "aHVudGVyMi1odW50ZXIy"] {
        let ran = run(&mut with(place.serving(&[]), ("SVC_SERVER_MASTER_KEY", wrong)));
        ran.refused("the master key is 32 bytes in base64");
        assert!(!ran.stderr.contains(wrong), "{ran:?}");
    }
    // A sandbox without any makes its own.
    assert_eq!(get(&place.serve().base_url(), "/readyz").status, 200);
}

fn with(mut command: Command, (name, value): (&str, &str)) -> Command {
    command.env(name, value);
    command
}
