//! The servers a table needs, and the run of all its cases.

use std::cell::OnceCell;

use super::case::{self, Server, Single};
use super::merchant::Merchant;
use super::running::{Home, Running};
use super::template::Words;
use super::verdict;
use super::wire::{self, Connection};

/// Servers start when the first case asks for them.
#[derive(Default)]
pub(crate) struct Stage {
    sandbox: OnceCell<Actor>,
    demo: OnceCell<Actor>,
    production: OnceCell<Actor>,
}

/// A server with its one merchant. Fields end in this order: the server before its files.
struct Actor {
    running: Running,
    merchant: Merchant,
    _home: Home,
}

impl Stage {
    /// Runs every case, then tells all that failed at once.
    pub(crate) fn run(&self, name: &str, text: &str) {
        let cases = case::read(name, text);
        assert!(!cases.is_empty(), "{name} has no cases");
        let mut failures: Vec<_> = cases.iter().filter_map(|single| self.failure(single)).collect();
        failures.extend(self.actors().filter_map(secrets_in_log));
        let (failed, all) = (failures.len(), cases.len());
        assert!(failures.is_empty(), "{failed} of {all} failed\n\n{}\n", failures.join("\n\n"));
    }

    fn failure(&self, single: &Single) -> Option<String> {
        let actor = self.actor(single.server());
        let words = words(actor, &single.value);
        let request = single.bytes(&words);
        let mut connection = Connection::open(actor.running.address);
        let mut complaints = match connection.exchange(&request) {
            Ok(answer) => verdict::complaints(single, &words, &request, &answer),
            Err(fault) => vec![fault],
        };
        if complaints.is_empty() && single.case.closes && !connection.is_closed() {
            complaints.push("the connection stayed open".into());
        }
        if let Err(fault) = still_answers(actor) {
            complaints.push(format!("afterwards the server is gone: {fault}"));
        }
        let title = format!("{} {}", single.case.id, words.text(&single.case.say));
        (!complaints.is_empty()).then(|| format!("{title}\n  {}", complaints.join("\n  ")))
    }

    fn actor(&self, server: Server) -> &Actor {
        match server {
            Server::Sandbox => self.sandbox.get_or_init(|| {
                let home = Home::sandbox();
                Actor::new(home.serve(&[]), home)
            }),
            Server::Demo => self.demo.get_or_init(|| {
                let home = Home::sandbox();
                let (running, credentials) = home.demo();
                let merchant = Merchant::new(running.address, credentials);
                Actor { running, merchant, _home: home }
            }),
            Server::Production => self.production.get_or_init(|| {
                let home = Home::production();
                Actor::new(home.serve_production(), home)
            }),
        }
    }

    fn actors(&self) -> impl Iterator<Item = &Actor> {
        [&self.sandbox, &self.demo, &self.production].into_iter().filter_map(OnceCell::get)
    }
}

impl Actor {
    fn new(running: Running, home: Home) -> Self {
        let merchant = Merchant::new(running.address, home.partner("Loja"));
        Self { running, merchant, _home: home }
    }
}

fn words<'a>(actor: &'a Actor, value: &'a str) -> Words<'a> {
    let Merchant { credentials, token, .. } = &actor.merchant;
    Words { credentials, token, value, order: &[] }
}

fn still_answers(actor: &Actor) -> Result<(), String> {
    let alive = wire::request(b"GET /livez", &[], b"");
    let answer = Connection::open(actor.running.address).exchange(&alive)?;
    if answer.status == 200 { Ok(()) } else { Err(format!("/livez says {}", answer.status)) }
}

/// Credentials came in headers, forms, URLs and bodies: none may stay in a log.
fn secrets_in_log(actor: &Actor) -> Option<String> {
    let log = actor.running.log();
    let words = words(actor, "");
    let leaked = verdict::secrets(&words).into_iter().find(|(_, secret)| log.contains(secret));
    leaked.map(|(name, _)| format!("the log holds {name}"))
}
