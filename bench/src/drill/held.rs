//! Events that a node has claimed and cannot get rid of: what a fault must find in its hands.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::crowd::Crowd;
use super::waiting::until;
use crate::merchant::{Merchant, Silent};
use crate::process::{Data, psql};

/// As many as a node sends to a new destination at once.
const EACH: usize = 4;

pub(super) struct Held {
    merchant: Silent,
    events: String,
}

impl Held {
    /// Each of these nodes commits some and tries to tell them to a merchant that does not answer.
    pub(super) async fn by(crowd: &Crowd, data: &Data, nodes: &[&str]) -> anyhow::Result<Self> {
        let held =
            Self { merchant: Silent::start().await?, events: (nodes.len() * EACH).to_string() };
        let callers = crowd.callers_at(nodes).await?;
        let ids = |node: usize| (0..EACH).map(move |number| format!("held-{node}-{number}"));
        for (node, caller) in callers.iter().enumerate() {
            for id in ids(node) {
                caller.create(&id, &held.merchant.url()).await?;
            }
        }
        // All at once: whoever gets no answer gives an event up after five seconds.
        let mut confirmed = JoinSet::new();
        for (node, caller) in callers.iter().enumerate() {
            for id in ids(node) {
                let caller = Arc::clone(caller);
                confirmed.spawn(async move { caller.simulate(&id, "confirm").await });
            }
        }
        confirmed.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let leased = held.count("lease_token is not null");
        let all = async || psql(&data.url, &leased).await.is_ok_and(|count| count == held.events);
        until("the nodes hold events", all).await?;
        Ok(held)
    }

    /// From now on their merchant answers.
    pub(super) fn speak(self) -> Told {
        let delivered = self.count("state = 'delivered' and status = 'CON'");
        Told { _merchant: self.merchant.speak(), delivered, events: self.events }
    }

    fn count(&self, condition: &str) -> String {
        let url = self.merchant.url();
        format!("select count(*) from outbox where webhook_url = '{url}' and {condition}")
    }
}

/// They can be told now, by whoever may.
pub(super) struct Told {
    _merchant: Merchant,
    delivered: String,
    events: String,
}

impl Told {
    pub(super) async fn all(&self, data: &Data) -> bool {
        psql(&data.url, &self.delivered).await.is_ok_and(|count| count == self.events)
    }
}
