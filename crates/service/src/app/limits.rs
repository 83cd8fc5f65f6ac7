//! Token buckets: who asks too often is told when to come back.

use std::hash::{BuildHasher, Hash, RandomState};
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

/// Each is a line of the log; a page with a fault makes a handful.
const POLICY_REPORTS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(20).expect("not zero");

/// To one telephone, whatever the order: whoever knows a number could ask until its owner gives in.
const PUSHES_AT_ONCE: NonZeroU32 = NonZeroU32::new(10).expect("not zero");
const PUSH_PERIOD: Duration = Duration::from_mins(3);

/// Windows of one order, each of which is a row for a month. A payer opens a handful.
const WINDOWS_AT_ONCE: NonZeroU32 = NonZeroU32::new(30).expect("not zero");
const WINDOW_PERIOD: Duration = Duration::from_mins(1);

/// Whole pages of one order at once; then as many as looks.
const PAGES_AT_ONCE: NonZeroU32 = NonZeroU32::new(60).expect("not zero");

/// What is counted, each for keys of its own.
#[derive(Clone, Copy)]
enum Rate {
    CredentialFailures,
    AddressFailures,
    PartnerRequests,
    OrderQueries,
    EventPages,
    CheckoutMisses,
    CheckoutPolls,
    CheckoutPages,
    CheckoutWindows,
    SignIns,
    SignInAddresses,
    Codes,
    Pushes,
    PlaygroundOrders,
    PolicyReports,
}

impl Rate {
    /// In the order of their numbers.
    const ALL: [Self; 15] = [
        Self::CredentialFailures,
        Self::AddressFailures,
        Self::PartnerRequests,
        Self::OrderQueries,
        Self::EventPages,
        Self::CheckoutMisses,
        Self::CheckoutPolls,
        Self::CheckoutPages,
        Self::CheckoutWindows,
        Self::SignIns,
        Self::SignInAddresses,
        Self::Codes,
        Self::Pushes,
        Self::PlaygroundOrders,
        Self::PolicyReports,
    ];

    fn quota(self, limits: &Limits) -> Quota {
        let a_second = |rate| Quota::per_second(at_least_one(rate));
        let a_minute = |rate| Quota::per_minute(at_least_one(rate));
        let every = |period| Quota::with_period(period).expect("not zero");
        match self {
            Self::CredentialFailures => a_minute(limits.token_failures_per_minute),
            Self::AddressFailures => a_minute(limits.address_failures_per_minute),
            Self::PartnerRequests => a_second(limits.partner_requests_per_second),
            Self::OrderQueries => a_second(limits.order_queries_per_second),
            Self::EventPages => a_second(limits.event_pages_per_second),
            Self::CheckoutMisses => a_minute(limits.checkout_misses_per_minute),
            Self::CheckoutPolls => a_second(limits.checkout_polls_per_second),
            Self::CheckoutPages => {
                a_second(limits.checkout_polls_per_second).allow_burst(PAGES_AT_ONCE)
            }
            Self::CheckoutWindows => every(WINDOW_PERIOD).allow_burst(WINDOWS_AT_ONCE),
            Self::SignIns => Quota::per_minute(SIGN_INS_PER_MINUTE),
            Self::SignInAddresses => Quota::per_minute(SIGN_INS_OF_ADDRESS_PER_MINUTE),
            Self::Codes => every(CODE_PERIOD).allow_burst(CODES_AT_ONCE),
            Self::Pushes => every(PUSH_PERIOD).allow_burst(PUSHES_AT_ONCE),
            Self::PlaygroundOrders => Quota::per_minute(PLAYGROUND_ORDERS_PER_MINUTE),
            Self::PolicyReports => Quota::per_minute(POLICY_REPORTS_PER_MINUTE),
        }
    }
}

// A number finds its buckets.
const _: () = {
    let mut number = 0;
    while number < Rate::ALL.len() {
        assert!(Rate::ALL[number] as usize == number);
        number += 1;
    }
};

type Buckets = RateLimiter<u64, DashMapStateStore<u64>, DefaultClock>;

pub struct RateLimits {
    clock: DefaultClock,
    /// A hash stands for each key; nobody can make two alike.
    hasher: RandomState,
    buckets: [Buckets; Rate::ALL.len()],
}

impl RateLimits {
    pub fn new(limits: &Limits) -> Self {
        Self {
            clock: DefaultClock::default(),
            hasher: RandomState::new(),
            buckets: Rate::ALL.map(|rate| RateLimiter::dashmap(rate.quota(limits))),
        }
    }

    /// Counts a failed sign-in. Success is never counted: nobody can lock a partner out.
    pub fn token_failure(&self, client: Option<&ClientId>, from: IpAddr) -> Result<(), Limited> {
        let from = network(from);
        self.spend(Rate::AddressFailures, from)?;
        match client {
            Some(client) => self.spend(Rate::CredentialFailures, (client, from)),
            None => Ok(()),
        }
    }

    pub fn partner_request(&self, partner: PartnerId) -> Result<(), Limited> {
        self.spend(Rate::PartnerRequests, partner)
    }

    pub fn order_query(
        &self,
        partner: PartnerId,
        order: &ExternalTransactionId,
    ) -> Result<(), Limited> {
        self.spend(Rate::OrderQueries, (partner, order))
    }

    /// A page of events may read thousands of rows.
    pub fn event_page(&self, partner: PartnerId) -> Result<(), Limited> {
        self.spend(Rate::EventPages, partner)
    }

    /// Counts a try to sign in to the console: each costs an expensive hash.
    pub fn sign_in(&self, login: &str, from: IpAddr) -> Result<(), Limited> {
        let from = network(from);
        self.spend(Rate::SignInAddresses, from)?;
        self.spend(Rate::SignIns, (login, from))
    }

    /// Counts a try of somebody's code, by who knows the password.
    pub fn code(&self, person: i64) -> Result<(), Limited> {
        self.spend(Rate::Codes, person)
    }

    /// Counts a request for money on somebody's telephone.
    pub fn push(&self, phone: &PhoneNumber) -> Result<(), Limited> {
        self.spend(Rate::Pushes, phone.e164())
    }

    /// Counts an order of a sandbox's playground.
    pub fn playground_order(&self, from: IpAddr) -> Result<(), Limited> {
        self.spend(Rate::PlaygroundOrders, network(from))
    }

    /// Counts what somebody's browser says that it refused.
    pub fn policy_report(&self, from: IpAddr) -> Result<(), Limited> {
        self.spend(Rate::PolicyReports, network(from))
    }

    /// Counts a checkout page that does not exist: somebody may be guessing.
    pub fn checkout_miss(&self, from: IpAddr) -> Result<(), Limited> {
        self.spend(Rate::CheckoutMisses, network(from))
    }

    /// A look at an order, or a try to pay it.
    pub fn checkout_poll(&self, order: &ReferenceNumber) -> Result<(), Limited> {
        self.spend(Rate::CheckoutPolls, order)
    }

    /// A whole page of an order.
    pub fn checkout_page(&self, order: &ReferenceNumber) -> Result<(), Limited> {
        self.spend(Rate::CheckoutPages, order)
    }

    /// Another window of an order, which is a row.
    pub fn checkout_window(&self, order: &ReferenceNumber) -> Result<(), Limited> {
        self.spend(Rate::CheckoutWindows, order)
    }

    /// Forgets buckets that are full again, so that memory follows the traffic.
    pub fn forget_idle(&self) {
        for buckets in &self.buckets {
            buckets.retain_recent();
        }
    }

    fn spend(&self, rate: Rate, key: impl Hash) -> Result<(), Limited> {
        let key = self.hasher.hash_one(key);
        self.buckets[rate as usize].check_key(&key).map_err(|until| {
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

fn at_least_one(rate: u32) -> NonZeroU32 {
    NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN)
}
