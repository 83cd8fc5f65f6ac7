//! Callers that create orders without pause and keep a ledger of what was acknowledged.

use std::collections::HashMap;
use std::io::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::support::merchant::{Merchant, reference};
use crate::support::{PATIENCE, until};

const CALLERS: usize = 8;

/// Order id to reference number, as the answers told.
pub(crate) type Ledger = HashMap<String, String>;

pub(crate) struct Crowd {
    ledger: Arc<Mutex<Ledger>>,
    enough: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Option<Error>>>,
}

impl Crowd {
    /// `name` keeps the orders of this crowd apart from those of another.
    pub(crate) fn start(merchant: &Merchant, name: &str) -> Self {
        let (ledger, enough) = (Arc::<Mutex<Ledger>>::default(), Arc::<AtomicBool>::default());
        let token = merchant.token();
        let callers = (0..CALLERS)
            .map(|caller| {
                let (ledger, enough) = (Arc::clone(&ledger), Arc::clone(&enough));
                let (merchant, token) = (merchant.clone(), token.clone());
                let name = format!("{name}-{caller}");
                std::thread::spawn(move || {
                    create_orders(&merchant, &token, &name, &ledger, &enough)
                })
            })
            .collect();
        Self { ledger, enough, callers }
    }

    pub(crate) fn acknowledged(&self) -> Ledger {
        self.ledger.lock().expect("no caller fails inside").clone()
    }

    /// Waits until at least so many orders are acknowledged.
    pub(crate) fn wait_for(&self, orders: usize) {
        until("orders are acknowledged", PATIENCE, || {
            (self.acknowledged().len() >= orders).then_some(())
        });
    }

    /// Ends all callers: what was acknowledged, and the faults that ended a caller before its time.
    pub(crate) fn finish(mut self) -> (Ledger, Vec<Error>) {
        self.enough.store(true, Ordering::Relaxed);
        let faults = std::mem::take(&mut self.callers)
            .into_iter()
            .filter_map(|caller| caller.join().expect("every answer is the 200 envelope"))
            .collect();
        (self.acknowledged(), faults)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
    }
}

/// Creates orders until it is enough or the connection fails.
fn create_orders(
    merchant: &Merchant,
    token: &str,
    name: &str,
    ledger: &Mutex<Ledger>,
    enough: &AtomicBool,
) -> Option<Error> {
    for n in 0.. {
        if enough.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("{name}-{n}");
        match merchant.create(token, &id) {
            Ok(answer) => {
                let reference = reference(&answer);
                ledger.lock().expect("no caller fails inside").insert(id, reference);
            }
            Err(fault) => return Some(fault),
        }
    }
    None
}
