//! What `svc serve` refuses to start with: unsafe production, and databases it cannot trust.

use std::process::Command;

use crate::support::http::get;
use crate::support::merchant::{Merchant, reference};
use crate::support::{Place, Service, run, svc};

/// A production database and its master key.
struct Production {
    place: Place,
    key: String,
}

const ENVIRONMENT: [&str; 2] = ["--environment", "production"];
const PUBLIC_URL: [&str; 2] = ["--public-url", "https://api.example.ao"];
const PROXY: [&str; 2] = ["--trusted-proxy", "127.0.0.0/8"];
const PAGE_BYTES: usize = 4_096;

impl Production {
    fn new() -> Self {
        let key = run(&mut svc(&["keygen"])).stdout.trim().to_owned();
        let production = Self { place: Place::sqlite(), key };
        let migrated = run(&mut production.svc(&[&["migrate"], &ENVIRONMENT]));
        assert_eq!(migrated.code, Some(0), "{migrated:?}");
        production
    }

    fn svc(&self, arguments: &[&[&str]]) -> Command {
        let mut command = svc(&arguments.concat());
        command.args(["--database", &self.place.database]);
        command.env("SVC_SERVER_MASTER_KEY", &self.key);
        command
    }

    fn serve(&self, settings: &[&[&str]]) -> Command {
        let mut command = self.svc(&[&["serve", "--json"]]);
        command.args(settings.concat()).env("SVC_SERVER_LISTEN", "127.0.0.1:0");
        command
    }
}

#[test]
fn production_starts_when_nothing_is_wrong() {
    let production = Production::new();
    let service = Service::start(&mut production.serve(&[&ENVIRONMENT, &PUBLIC_URL, &PROXY]));
    assert_eq!(service.base_url(), "https://api.example.ao");
    assert_eq!(service.stop().code, Some(0));
}

#[test]
fn production_refuses_each_unsafe_setting_with_its_sentence() {
    let production = Production::new();
    let plain_public_url = ["--public-url", "http://api.example.ao"];
    let cases: [(&[&[&str]], &str); 5] = [
        (&[&ENVIRONMENT, &PUBLIC_URL], "production is not served over plain http"),
        (
            &[&ENVIRONMENT, &PUBLIC_URL, &PROXY, &["--private-webhook-targets"]],
            "production never sends webhooks to private addresses",
        ),
        (&[&ENVIRONMENT, &PROXY], "production needs an https --public-url"),
        (&[&ENVIRONMENT, &PROXY, &plain_public_url], "production needs an https --public-url"),
        // Leaving the environment out does not get round it: the database knows.
        (&[&PUBLIC_URL], "production is not served over plain http"),
    ];
    for (settings, sentence) in cases {
        run(&mut production.serve(settings)).refused(sentence);
    }
}

#[test]
fn production_invites_by_https_alone() {
    let production = Production::new();
    let create = |url: &[&str]| run(&mut production.svc(&[&["operator", "create", "ana"], url]));
    for wrong in [&[][..], &["--url", "http://api.example.ao"]] {
        create(wrong).refused("production is reached by https");
    }
    let told = create(&["--url", "https://api.example.ao/"]).stdout;
    assert!(told.starts_with("https://api.example.ao/console/welcome/"), "{told}");
}

#[test]
fn production_without_a_master_key_is_refused() {
    let production = Production::new();
    let mut command = production.serve(&[&ENVIRONMENT, &PUBLIC_URL, &PROXY]);
    run(command.env_remove("SVC_SERVER_MASTER_KEY")).refused("production needs its master key");
}

#[test]
fn production_never_makes_an_empty_database_where_one_is_missing() {
    let mut production = Production::new();
    let missing = production.place.folder.path("missing.db");
    production.place.database = format!("sqlite:{missing}");
    let ran = run(&mut production.serve(&[&ENVIRONMENT, &PUBLIC_URL, &PROXY]));
    ran.refused("there is no database at");
    assert!(ran.stderr.contains(&missing), "{ran:?}");
    for left in [missing.clone(), format!("{missing}.lock")] {
        assert!(!std::fs::exists(&left).expect("the folder can be read"), "{left}");
    }
}

#[test]
fn a_sandbox_database_is_not_served_as_production() {
    let mut production = Production::new();
    let sandbox = Place::sqlite();
    sandbox.partner();
    production.place = sandbox;
    run(&mut production.serve(&[&ENVIRONMENT, &PUBLIC_URL, &PROXY]))
        .refused("this database belongs to a sandbox service");
}

#[test]
fn a_production_database_is_not_served_as_a_sandbox() {
    let production = Production::new();
    run(&mut production.serve(&[&["--environment", "sandbox"]]))
        .refused("this database belongs to a production service");
}

#[test]
fn in_production_a_plain_http_webhook_is_422() {
    let production = Production::new();
    let created = run(&mut production.svc(&[&["partner", "create", "Loja", "--json"]]));
    let service = Service::start(&mut production.serve(&[&ENVIRONMENT, &PUBLIC_URL, &PROXY]));
    // The base URL is the public one; this test comes in behind the proxy.
    let address = service.ready()["listen"].as_str().expect("an address").to_owned();
    let merchant = Merchant::new(format!("http://{address}"), &created.json());
    assert_eq!(get(&merchant.base_url, "/readyz").status, 200);
    let token = merchant.token();
    let refused = merchant
        .create_with(&token, "order-1", "http://shop.example.ao/api/svc/webhook")
        .expect("the server answers");
    assert_eq!((refused.status, &refused.json()["error"]), (422, &"invalid_body".into()));
    assert!(refused.body.contains("webhookUrl"), "{refused:?}");
    assert_eq!(merchant.query(&token, "order-1").status, 404, "nothing was stored");
    reference(&merchant.create(&token, "order-1").expect("the server answers"));
}

#[test]
fn what_is_no_database_is_refused_by_its_path() {
    let place = Place::sqlite();
    let text = "this is a letter to my grandmother, not a database\n".repeat(200);
    std::fs::write(place.folder.path("svc.db"), text).expect("the folder can be written");
    refused_as_is(&place, &place.folder.path("svc.db"));
}

#[test]
fn a_ruined_database_is_refused_by_its_path() {
    let (place, path, whole) = copy_of_a_database();
    damage(&path, &whole, 1..whole.len() / PAGE_BYTES);
    refused_as_is(&place, &path);
}

#[test]
fn damage_in_any_page_is_found_at_the_start() {
    let (place, path, whole) = copy_of_a_database();
    for page in 1..whole.len() / PAGE_BYTES {
        damage(&path, &whole, page..page + 1);
        refused_as_is(&place, &path);
    }
}

/// A database that has all its pages in one file, and none in a log that would mend damage.
fn copy_of_a_database() -> (Place, String, Vec<u8>) {
    let mut place = Place::sqlite();
    place.partner();
    let path = place.folder.path("copy.db");
    assert_eq!(place.svc(&["backup", &path]).code, Some(0));
    // Damage to a page that is not in use is none.
    let copy = rusqlite::Connection::open(&path).expect("it is a database");
    copy.execute_batch("vacuum").expect("it can be written");
    drop(copy);
    let whole = std::fs::read(&path).expect("it is there");
    place.database = format!("sqlite:{path}");
    drop(place.serve());
    (place, path, whole)
}

/// Spoils pages but for the first, so that the file still looks like a database.
fn damage(path: &str, whole: &[u8], pages: std::ops::Range<usize>) {
    let mut bytes = whole.to_owned();
    bytes[pages.start * PAGE_BYTES..pages.end * PAGE_BYTES].fill(0xA5);
    for log in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{path}{log}"));
    }
    std::fs::write(path, bytes).expect("the folder can be written");
}

#[test]
fn a_directory_in_the_place_of_the_database_is_refused() {
    let place = Place::sqlite();
    std::fs::create_dir(place.folder.path("svc.db")).expect("the folder can be written");
    place.svc(&["serve", "--listen", "127.0.0.1:0"]).refused("cannot open the database");
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let mut place = Place::sqlite();
    place.database = format!("sqlite:{}", place.folder.path("nowhere/svc.db"));
    place.svc(&["partner", "list"]).refused("nowhere/svc.db");
    let folder = place.folder.path("nowhere");
    let told = format!("the folder {folder} does not exist: mkdir -p {folder}");
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"]] {
        place.svc(command).refused(&told);
    }
}

#[test]
fn what_is_no_database_url_is_refused() {
    let mut place = Place::sqlite();
    for database in ["svc.db", "mysql://root@db/svc", "sqlite:"] {
        place.database = database.to_owned();
        place.svc(&["serve", "--listen", "127.0.0.1:0"]).refused("the database is sqlite:PATH");
    }
    place.database = "svc-demo/svc.db".to_owned();
    place.svc(&["migrate"]).refused("write sqlite:svc-demo/svc.db");
}

/// A clear refusal that names the file and leaves it as it was.
fn refused_as_is(place: &Place, path: &str) {
    let before = std::fs::read(path).expect("it is there");
    let ran = place.svc(&["serve", "--listen", "127.0.0.1:0"]);
    ran.refused(path);
    assert!(std::fs::read(path).expect("it is there") == before, "the file was changed");
}
