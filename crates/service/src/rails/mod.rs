//! Payment methods behind one contract. A rail is told about an attempt that is already stored and
//! answers; it never calls back into the service and never changes an order.

mod connector;
mod simulator;
mod wire;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::OwnedSemaphorePermit;

use crate::config::RailConfig;
use crate::domain::{
    AttemptId, BankReference, Centimos, Environment, Forecast, Kwanza, PaymentAttempt,
    PaymentMethod, PhoneNumber, Reason, WalletCode,
};

pub use connector::{Connector, ConnectorError};
pub use simulator::{Simulator, payment_id};
pub use wire::{Listing, NotAuthentic, Signature};

/// What a rail can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub methods: Vec<MethodTerms>,
    /// Whether a reference can be withdrawn before its deadline.
    pub can_revoke: bool,
    /// Whether the rail can be asked for the outcome of an attempt.
    pub can_query: bool,
    /// Whether it keeps a queue of payments until they are acknowledged.
    pub has_queue: bool,
}

/// A method and the amounts it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodTerms {
    pub method: PaymentMethod,
    pub min: i64,
    pub max: i64,
}

/// What a rail is asked to start. The attempt is stored already.
#[derive(Clone, Debug)]
pub struct Start {
    pub attempt: AttemptId,
    pub amount: Kwanza,
    pub label: String,
    pub how: How,
    pub deadline: Timestamp,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub enum How {
    Push(PhoneNumber),
    /// With a number that is kept for it, should the rail let us choose.
    Reference(BankReference),
    Code,
}

/// A rail's answer. Silence is `Unknown`, never a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Accepted(Accepted),
    Refused(Reason),
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub rail_id: String,
    pub given: Given,
    /// Until when the payer can act, if the rail says otherwise than it was asked.
    pub deadline: Option<Timestamp>,
    /// What the simulators are going to say; a real rail cannot tell.
    pub forecast: Vec<Forecast>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Push,
    Reference(BankReference),
    Code(WalletCode),
}

/// What a rail says when it is asked about an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Paid { rail_payment_id: String, amount: Centimos },
    Refused(Reason),
    Unknown,
}

/// How a rail can be asked something now.
#[derive(Debug)]
pub enum Line {
    /// It answers at once.
    Quick,
    /// It may take half a minute; hold this meanwhile.
    Slow(OwnedSemaphorePermit),
    /// As many questions are under way as it gets at once: it has a line again after about so long.
    Busy(SignedDuration),
}

pub enum Rail {
    Simulator(Simulator),
    Connector(Box<Connector>),
}

impl Rail {
    pub fn name(&self) -> &str {
        match self {
            Self::Simulator(_) => Simulator::NAME,
            Self::Connector(connector) => connector.name(),
        }
    }

    /// `None` while the rail has not told.
    pub fn capabilities(&self) -> Option<Arc<Capabilities>> {
        match self {
            Self::Simulator(simulator) => Some(simulator.capabilities()),
            Self::Connector(connector) => connector.capabilities(),
        }
    }

    /// Since when it could have told us of a payment; `None` while it is away.
    pub fn heard_since(&self) -> Option<Timestamp> {
        match self {
            Self::Simulator(_) => Some(Timestamp::MIN),
            Self::Connector(connector) => connector.heard_since(),
        }
    }

    pub fn line(&self) -> Line {
        match self {
            Self::Simulator(_) => Line::Quick,
            Self::Connector(connector) => connector.line(),
        }
    }

    /// As `line`, for what can wait: leaves half of a slow rail to questions about payments.
    pub fn spare_line(&self) -> Line {
        match self {
            Self::Simulator(_) => Line::Quick,
            Self::Connector(connector) => connector.spare_line(),
        }
    }

    pub async fn start(&self, start: &Start) -> Answer {
        match self {
            Self::Simulator(simulator) => simulator.start(start),
            Self::Connector(connector) => connector.start(start).await,
        }
    }

    /// Whether the reference is dead at the rail as well.
    pub async fn revoke(&self, attempt: &PaymentAttempt) -> bool {
        match self {
            Self::Simulator(_) => true,
            Self::Connector(connector) => connector.revoke(attempt).await,
        }
    }

    pub async fn query(&self, attempt: &PaymentAttempt, amount: Kwanza, now: Timestamp) -> Outcome {
        match self {
            Self::Simulator(simulator) => simulator.query(attempt, amount, now),
            Self::Connector(connector) => connector.query(attempt).await,
        }
    }

    /// Only a connector has a queue and statements.
    pub fn connector(&self) -> Option<&Connector> {
        match self {
            Self::Simulator(_) => None,
            Self::Connector(connector) => Some(connector),
        }
    }
}

/// The rails of this service. Of two that offer a method the first is used.
pub struct Rails(Vec<Arc<Rail>>);

#[derive(Debug, thiserror::Error)]
pub enum RailsError {
    #[error("two rails are called {0}; give each its own name")]
    SameName(String),
    #[error(transparent)]
    Connector(#[from] ConnectorError),
}

impl Rails {
    /// The configured connectors, and in a sandbox the simulator for what they do not offer. `run` tells this
    /// node's present life from all others.
    pub fn new(
        environment: Environment,
        connectors: &[RailConfig],
        run: &str,
    ) -> Result<Self, RailsError> {
        let mut rails: Vec<Arc<Rail>> = Vec::new();
        for config in connectors {
            if config.name == Simulator::NAME || rails.iter().any(|rail| rail.name() == config.name)
            {
                return Err(RailsError::SameName(config.name.clone()));
            }
            rails.push(Arc::new(Rail::Connector(Box::new(Connector::new(config, run)?))));
        }
        match environment {
            Environment::Sandbox => rails.push(Arc::new(Rail::Simulator(Simulator::new()))),
            // Nobody pays for real with a simulator.
            Environment::Production => {}
        }
        Ok(Self(rails))
    }

    pub fn all(&self) -> &[Arc<Rail>] {
        &self.0
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Rail>> {
        self.0.iter().find(|rail| rail.name() == name)
    }

    /// The rail for this method and amount. None hides the method instead of failing later.
    pub fn offering(&self, method: PaymentMethod, amount: Kwanza) -> Option<&Arc<Rail>> {
        self.0.iter().find(|rail| {
            rail.capabilities().is_some_and(|can| {
                can.methods.iter().any(|terms| {
                    terms.method == method && (terms.min..=terms.max).contains(&amount.get())
                })
            })
        })
    }
}
