//! One row of a simulator's table: what is chosen, and all that must follow from it.

use svc_service::orders::Choice;

use crate::support::{Seen, TestDatabase, TestPaying, events_of};

pub(super) struct Row<'a> {
    pub amount: i64,
    pub choice: Choice,
    /// How long the order is watched.
    pub until_s: i64,
    /// What changed when.
    pub timeline: &'a [Seen],
    pub reason: Option<&'a str>,
    /// Of the outbox, with the second each was committed at.
    pub events: &'a [(i64, &'a str)],
    /// Kind and centimos.
    pub exceptions: &'a [(&'a str, i64)],
    /// Words of the rail in all.
    pub notices: i64,
}

impl Row<'_> {
    pub(super) async fn holds(self, database: TestDatabase) {
        let paying = TestPaying::start(database).await;
        let order = paying.order("order_1", self.amount).await;
        paying.pay(&order, &self.choice).await;
        assert_eq!(paying.timeline(&order, self.until_s).await, self.timeline);
        let dossier = paying.dossier(&order).await;
        assert_eq!(dossier.attempts.len(), 1);
        let reason = dossier.attempts[0].reason.as_ref().map(|reason| reason.to_text());
        assert_eq!(reason.as_deref(), self.reason);
        let events = events_of(&paying.app.store, &order).await;
        let told: Vec<_> = events
            .iter()
            .map(|event| {
                let after = event.created_at.duration_since(order.created_at);
                (after.as_secs(), event.status.code())
            })
            .collect();
        assert_eq!(told, self.events);
        assert_eq!(paying.exceptions(&order).await, self.exceptions);
        paying.accounted_for(self.notices).await;
        // Whoever is done with is not looked at again.
        if dossier.order.status.code() != "PEN" {
            assert_eq!(paying.app.store.due(jiff::Timestamp::MAX, 10).await.unwrap().len(), 0);
        }
    }
}
