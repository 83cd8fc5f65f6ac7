//! Token buckets: who asks too often is told when to come back.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::config::Limits;
use crate::domain::{ClientId, ExternalTransactionId, PartnerId, PhoneNumber, ReferenceNumber};

/// Too many; seconds until one more is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    pub retry_after_s: u64,
}

/// For one login and address, and for one address.
const SIGN_INS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(10).expect("not zero");
const SIGN_INS_OF_ADDRESS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).expect("not zero");

/// Of one person, from wherever they come: a code has a million values, and a network is cheap.
const CODES_AT_ONCE: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
const CODE_PERIOD: Duration = Duration::from_mins(6);

/// From one address: everybody who knows a shop's public key can ask for some.
const PLAYGROUND_ORDERS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).expect("not zero");

/// To one telephone, whatever the order: whoever knows a number could ask until its owner gives in.
const PUSHES_AT_ONCE: NonZeroU32 = NonZeroU32::new(10).expect("not zero");
const PUSH_PERIOD: Duration = Duration::from_mins(3);

/// Windows of one order, each of which is a row for a month. A payer opens a handful.
const WINDOWS_AT_ONCE: NonZeroU32 = NonZeroU32::new(30).expect("not zero");
const WINDOW_PERIOD: Duration = Duration::from_mins(1);

/// Whole pages of one order at once; then as many as looks.
const PAGES_AT_ONCE: NonZeroU32 = NonZeroU32::new(60).expect("not zero");

type Buckets<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock>;

pub struct RateLimits {
    clock: DefaultClock,
    hasher: RandomState,
    credential_failures: Buckets<u64>,
    address_failures: Buckets<IpAddr>,
    partner_requests: Buckets<PartnerId>,
    order_queries: Buckets<u64>,
    event_pages: Buckets<PartnerId>,
    checkout_misses: Buckets<IpAddr>,
    checkout_polls: Buckets<u64>,
    checkout_pages: Buckets<u64>,
    checkout_windows: Buckets<u64>,
    sign_ins: Buckets<u64>,
    sign_in_addresses: Buckets<IpAddr>,
    codes: Buckets<i64>,
    pushes: Buckets<u64>,
    playground_orders: Buckets<IpAddr>,
}

impl RateLimits {
    pub fn new(limits: &Limits) -> Self {
        let clock = DefaultClock::default();
        Self {
            hasher: RandomState::new(),
            credential_failures: buckets(Quota::per_minute(at_least_one(
                limits.token_failures_per_minute,
            ))),
            address_failures: buckets(Quota::per_minute(at_least_one(
                limits.address_failures_per_minute,
            ))),
            partner_requests: buckets(Quota::per_second(at_least_one(
                limits.partner_requests_per_second,
            ))),
            order_queries: buckets(Quota::per_second(at_least_one(
                limits.order_queries_per_second,
            ))),
            event_pages: buckets(Quota::per_second(at_least_one(limits.event_pages_per_second))),
            checkout_misses: buckets(Quota::per_minute(at_least_one(
                limits.checkout_misses_per_minute,
            ))),
            checkout_polls: buckets(Quota::per_second(at_least_one(
                limits.checkout_polls_per_second,
            ))),
            checkout_pages: buckets(
                Quota::per_second(at_least_one(limits.checkout_polls_per_second))
                    .allow_burst(PAGES_AT_ONCE),
            ),
            checkout_windows: buckets(
                Quota::with_period(WINDOW_PERIOD).expect("not zero").allow_burst(WINDOWS_AT_ONCE),
            ),
            sign_ins: buckets(Quota::per_minute(SIGN_INS_PER_MINUTE)),
            sign_in_addresses: buckets(Quota::per_minute(SIGN_INS_OF_ADDRESS_PER_MINUTE)),
            codes: buckets(
                Quota::with_period(CODE_PERIOD).expect("not zero").allow_burst(CODES_AT_ONCE),
            ),
            pushes: buckets(
                Quota::with_period(PUSH_PERIOD).expect("not zero").allow_burst(PUSHES_AT_ONCE),
            ),
            playground_orders: buckets(Quota::per_minute(PLAYGROUND_ORDERS_PER_MINUTE)),
            clock,
        }
    }

    /// Counts a failed sign-in. Success is never counted: nobody can lock a partner out.
    pub fn token_failure(&self, client: Option<&ClientId>, from: IpAddr) -> Result<(), Limited> {
        let from = network(from);
        self.spend(&self.address_failures, &from)?;
        match client {
            Some(client) => {
                let key = self.hasher.hash_one((client, from));
                self.spend(&self.credential_failures, &key)
            }
            None => Ok(()),
        }
    }

    pub fn partner_request(&self, partner: PartnerId) -> Result<(), Limited> {
        self.spend(&self.partner_requests, &partner)
    }

    pub fn order_query(
        &self,
        partner: PartnerId,
        order: &ExternalTransactionId,
    ) -> Result<(), Limited> {
        self.spend(&self.order_queries, &self.hasher.hash_one((partner, order)))
    }

    /// A page of events may read thousands of rows.
    pub fn event_page(&self, partner: PartnerId) -> Result<(), Limited> {
        self.spend(&self.event_pages, &partner)
    }

    /// Counts a try to sign in to the console: each costs an expensive hash.
    pub fn sign_in(&self, login: &str, from: IpAddr) -> Result<(), Limited> {
        let from = network(from);
        self.spend(&self.sign_in_addresses, &from)?;
        self.spend(&self.sign_ins, &self.hasher.hash_one((login, from)))
    }

    /// Counts a try of somebody's code, by who knows the password.
    pub fn code(&self, person: i64) -> Result<(), Limited> {
        self.spend(&self.codes, &person)
    }

    /// Counts a request for money on somebody's telephone.
    pub fn push(&self, phone: &PhoneNumber) -> Result<(), Limited> {
        self.spend(&self.pushes, &self.hasher.hash_one(phone.e164()))
    }

    /// Counts an order of a sandbox's playground.
    pub fn playground_order(&self, from: IpAddr) -> Result<(), Limited> {
        self.spend(&self.playground_orders, &network(from))
    }

    /// Counts a checkout page that does not exist: somebody may be guessing.
    pub fn checkout_miss(&self, from: IpAddr) -> Result<(), Limited> {
        self.spend(&self.checkout_misses, &network(from))
    }

    /// A look at an order, or a try to pay it.
    pub fn checkout_poll(&self, order: &ReferenceNumber) -> Result<(), Limited> {
        self.spend(&self.checkout_polls, &self.hasher.hash_one(order))
    }

    /// A whole page of an order.
    pub fn checkout_page(&self, order: &ReferenceNumber) -> Result<(), Limited> {
        self.spend(&self.checkout_pages, &self.hasher.hash_one(order))
    }

    /// Another window of an order, which is a row.
    pub fn checkout_window(&self, order: &ReferenceNumber) -> Result<(), Limited> {
        self.spend(&self.checkout_windows, &self.hasher.hash_one(order))
    }

    /// Forgets buckets that are full again, so that memory follows the traffic.
    pub fn forget_idle(&self) {
        self.credential_failures.retain_recent();
        self.address_failures.retain_recent();
        self.partner_requests.retain_recent();
        self.order_queries.retain_recent();
        self.event_pages.retain_recent();
        self.checkout_misses.retain_recent();
        self.checkout_polls.retain_recent();
        self.checkout_pages.retain_recent();
        self.checkout_windows.retain_recent();
        self.sign_ins.retain_recent();
        self.sign_in_addresses.retain_recent();
        self.codes.retain_recent();
        self.pushes.retain_recent();
        self.playground_orders.retain_recent();
    }

    fn spend<K: std::hash::Hash + Eq + Clone>(
        &self,
        buckets: &Buckets<K>,
        key: &K,
    ) -> Result<(), Limited> {
        buckets.check_key(key).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            Limited { retry_after_s: wait.as_secs() + 1 }
        })
    }
}

/// One subscriber holds a whole /64 of IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
    }
}

fn buckets<K: std::hash::Hash + Eq + Clone>(quota: Quota) -> Buckets<K> {
    RateLimiter::dashmap(quota)
}

fn at_least_one(rate: u32) -> NonZeroU32 {
    NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN)
}
