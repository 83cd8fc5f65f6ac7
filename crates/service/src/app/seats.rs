//! Seats: what somebody holds for long, of which a node has few and one house may not take all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::PartnerId;

/// Who shares: everybody of a merchant, or one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum House {
    Merchant(PartnerId),
    Operator(i64),
}

#[derive(Clone, Debug)]
pub struct Seats {
    of_node: usize,
    of_house: usize,
    taken: Arc<Mutex<HashMap<House, usize>>>,
}

/// Somebody's place, free again when this is dropped.
#[derive(Debug)]
pub struct Seat {
    house: House,
    taken: Arc<Mutex<HashMap<House, usize>>>,
}

impl Seats {
    pub fn new(of_node: usize, of_house: usize) -> Self {
        Self { of_node, of_house, taken: Arc::default() }
    }

    /// A place, if the node and the house have one left.
    pub fn take(&self, house: House) -> Option<Seat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.get(&house).copied().unwrap_or(0);
        if taken.values().sum::<usize>() >= self.of_node || own >= self.of_house {
            return None;
        }
        taken.insert(house, own + 1);
        Some(Seat { house, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.house) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                taken.remove(&self.house);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_house_never_takes_what_another_needs() {
        let seats = Seats::new(5, 2);
        let one = House::Merchant(PartnerId(1));
        let held: Vec<_> = (0..3).map_while(|_| seats.take(one)).collect();
        assert_eq!(held.len(), 2);
        // The same number means somebody else among operators.
        assert!(seats.take(House::Operator(1)).is_some());
        drop(held);
        assert!(seats.take(one).is_some());
        let others: Vec<_> = (2..9).map_while(|id| seats.take(House::Operator(id))).collect();
        assert_eq!(others.len(), 5, "and the node has no more than it has");
        assert!(seats.taken.lock().unwrap().len() == 5, "an empty house is forgotten");
    }
}
