//! Starting, stopping and dying: what was acknowledged stays, what was accepted is answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::crowd::{Crowd, Ledger};
use crate::support::http::{Answer, connect, get, read_answer};
use crate::support::merchant::{Merchant, reference};
use crate::support::postgres::FreshDatabase;
use crate::support::{Place, Service, run, svc, until};

const ORDERS: usize = 60;
const IN_PROGRESS: usize = 24;
const KILLS: usize = 5;
/// Far longer than it takes on any machine.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

on_both_engines! {
    sigterm_under_load_answers_what_was_accepted,
    sigterm_right_after_the_ready_line_is_a_calm_end,
    after_kill_9_every_acknowledged_order_is_there,
    a_token_outlives_a_restart,
}

fn sigterm_under_load_answers_what_was_accepted(place: &Place) {
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let crowd = Crowd::start(&merchant, "crowd");
    crowd.wait_for(ORDERS);
    let token = merchant.token();
    let mut open: Vec<_> =
        (0..IN_PROGRESS).map(|n| InProgress::start(&merchant, &token, n)).collect();

    service.terminate();
    until("no new connection is accepted", NOTICED_WITHIN, || connect(&merchant.base_url).err());
    let (mut acknowledged, faults) = crowd.finish();
    for fault in faults {
        assert!(!fault.to_string().contains("HTTP/1.1"), "an answer was cut: {fault}");
    }
    for request in open.drain(..) {
        let id = request.id.clone();
        acknowledged.insert(id, reference(&request.finish()));
    }
    let ended = service.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    all_there(place, &merchant, &acknowledged);
}

/// A request whose head is read and whose body is not sent yet: accepted beyond doubt.
struct InProgress {
    id: String,
    stream: TcpStream,
    body: String,
}

impl InProgress {
    fn start(merchant: &Merchant, token: &str, n: usize) -> Self {
        let id = format!("in-progress-{n}");
        let body = merchant.order(&id, "https://shop.example.ao/api/svc/webhook");
        let mut stream = connect(&merchant.base_url).expect("the server accepts");
        let head = format!(
            "POST /svcpartner/createPaymentOrder HTTP/1.1\r\nhost: test\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nexpect: 100-continue\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("the server reads");
        let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        let mut answer = vec![0; go_on.len()];
        stream.read_exact(&mut answer).expect("the server asks for the body");
        assert_eq!(String::from_utf8_lossy(&answer), go_on);
        Self { id, stream, body }
    }

    fn finish(mut self) -> Answer {
        self.stream.write_all(self.body.as_bytes()).expect("the server still reads");
        read_answer(self.stream).expect("an accepted request is answered whole")
    }
}

fn sigterm_right_after_the_ready_line_is_a_calm_end(place: &Place) {
    for _ in 0..KILLS {
        let ended = place.serve().stop();
        assert_eq!(ended.code, Some(0), "who waits for the ready line may stop it then: {ended:?}");
    }
}

fn after_kill_9_every_acknowledged_order_is_there(place: &Place) {
    let credentials = place.partner();
    let mut acknowledged = Ledger::new();
    for round in 0..KILLS {
        let mut service = place.serve();
        let merchant = Merchant::new(service.base_url(), &credentials);
        let crowd = Crowd::start(&merchant, &format!("round-{round}"));
        crowd.wait_for(ORDERS);
        service.child.kill().expect("SIGKILL can be sent");
        service.ended();
        acknowledged.extend(crowd.finish().0);
        all_there(place, &merchant, &acknowledged);
    }
    let references: std::collections::HashSet<_> = acknowledged.values().collect();
    assert_eq!(references.len(), acknowledged.len(), "no two orders share a reference");
}

/// Starts the service again and asks for every order.
fn all_there(place: &Place, merchant: &Merchant, acknowledged: &Ledger) {
    let service = place.serve();
    let merchant = Merchant { base_url: service.base_url(), ..merchant.clone() };
    let token = merchant.token();
    for (id, wanted) in acknowledged {
        assert_eq!(&reference(&merchant.query(&token, id)), wanted, "{id} was acknowledged");
    }
}

fn a_token_outlives_a_restart(place: &Place) {
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let token = merchant.token();
    let created = merchant.create(&token, "order-1").expect("the server answers");
    drop(service);
    let service = place.serve();
    let merchant = Merchant { base_url: service.base_url(), ..merchant };
    assert_eq!(reference(&merchant.query(&token, "order-1")), reference(&created));
}

/// Q13 of the bad-input tables: what one node wrote, the other reads at once.
#[test]
fn two_nodes_on_one_postgresql_know_each_others_tokens_and_orders() {
    let database = FreshDatabase::new();
    let place = database.place();
    let (first, second) = (place.serve(), place.serve());
    let here = Merchant::new(first.base_url(), &place.partner());
    let there = Merchant { base_url: second.base_url(), ..here.clone() };
    let token = here.token();
    for n in 0..20 {
        let id = format!("order-{n}");
        let created = here.create(&token, &id).expect("the server answers");
        let found = there.query(&token, &id);
        assert_eq!(reference(&found), reference(&created));
        assert_eq!(found.json()["data"]["paymentStatus"], "PEN");
        let again = there.create(&token, &id).expect("the server answers");
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(reference(&again), reference(&created));
    }
}

#[test]
fn a_second_service_on_one_sqlite_file_is_refused_and_commands_are_not() {
    let place = Place::sqlite();
    let first = place.serve();
    place.svc(&["serve", "--listen", "127.0.0.1:0"]).refused("another svc is using");
    place.partner();
    assert_eq!(place.svc(&["migrate"]).code, Some(0));
    drop(first);
    let second = place.serve();
    assert_eq!(get(&second.base_url(), "/readyz").status, 200, "the lock dies with it");
    // By whatever other name.
    let (file, folder) = (place.folder.path("svc.db"), &place.folder);
    std::fs::hard_link(&file, folder.path("hard.db")).expect("it can be linked");
    std::os::unix::fs::symlink(&file, folder.path("soft.db")).expect("it can be linked");
    for name in ["hard.db", "soft.db"] {
        let other = format!("sqlite:{}", folder.path(name));
        let mut serve = svc(&["serve", "--listen", "127.0.0.1:0", "--database", &other]);
        run(&mut serve).refused("another svc is using");
    }
}

#[test]
fn a_link_that_leads_nowhere_yet_is_the_name_of_what_is_made_there() {
    let place = Place::sqlite();
    std::os::unix::fs::symlink(place.folder.path("svc.db"), place.folder.path("soft.db")).unwrap();
    let by_link = format!("sqlite:{}", place.folder.path("soft.db"));
    let by_link = ["serve", "--json", "--listen", "127.0.0.1:0", "--database", &by_link];
    let _service = Service::start(&mut svc(&by_link));
    place.svc(&["serve", "--listen", "127.0.0.1:0"]).refused("another svc is using");
}

#[test]
fn a_migration_killed_midway_is_finished_by_the_next_start() {
    for _ in 0..KILLS {
        let place = Place::sqlite();
        let path = place.folder.path("svc.db");
        let mut command = svc(&["migrate", "--database", &place.database]);
        let mut migration = command.spawn().expect("the binary can be run");
        until("the file is there", NOTICED_WITHIN, || std::fs::metadata(&path).ok());
        migration.kill().expect("SIGKILL can be sent");
        migration.wait().expect("the child is ours to wait for");
        let service = place.serve();
        let merchant = Merchant::new(service.base_url(), &place.partner());
        reference(&merchant.create(&merchant.token(), "order-1").expect("the server answers"));
    }
}

#[test]
fn an_address_in_use_is_refused_with_a_sentence() {
    let (taken, place) = (Place::sqlite(), Place::sqlite());
    let service = taken.serve();
    let address = service.base_url().replace("http://", "");
    place.svc(&["serve", "--listen", &address]).refused("cannot listen on");
}
