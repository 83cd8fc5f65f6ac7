//! How many connections each address has open: one host does not take the place of all others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::app::network;

pub(super) struct Crowd {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of an address, while it is open.
pub(super) struct Place {
    crowd: Arc<Crowd>,
    address: IpAddr,
}

impl Crowd {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// None if the address has as many as it may.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = network(address);
        let mut open = self.open();
        let count = open.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place { crowd: Arc::clone(self), address })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.crowd.open();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_gives_it_back() {
        let crowd = Crowd::new(2);
        let of = |text: &str| crowd.enter(text.parse().unwrap());
        let (first, second) = (of("10.0.0.1"), of("10.0.0.1"));
        assert!(first.is_some() && second.is_some() && of("10.0.0.1").is_none());
        assert!(of("10.0.0.2").is_some(), "another one is let in");
        drop(first);
        assert!(of("10.0.0.1").is_some());
        drop(second);
        assert_eq!(crowd.open().len(), 0, "nobody is remembered");
    }

    #[test]
    fn a_subscriber_of_ipv6_is_one_address() {
        let crowd = Crowd::new(1);
        let _one = crowd.enter("2001:db8::1".parse().unwrap()).unwrap();
        assert!(crowd.enter("2001:db8::2".parse().unwrap()).is_none());
        assert!(crowd.enter("2001:db8:0:1::1".parse().unwrap()).is_some());
    }
}
