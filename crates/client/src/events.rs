//! The feed of events: the same the webhooks tell, for whoever would rather ask.

use hyper::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use url::form_urlencoded;

use crate::api::Client;
use crate::error::Error;

/// One event as the feed tells it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedEvent {
    /// The `webhook-id`; the same event may come in several pages.
    pub id: String,
    pub created_at: String,
    /// The body of the webhook, byte for byte.
    pub payload: Box<RawValue>,
}

/// A part of the feed, oldest first.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedPage {
    pub events: Vec<FeedEvent>,
    /// Give it to [`Client::events`] to go on; `None` when there is nothing yet.
    pub next_cursor: Option<String>,
    /// There is more after this page: ask on at once.
    pub has_more: bool,
}

impl Client {
    /// The events after a cursor, or the oldest of all.
    pub async fn events(&self, after: Option<&str>) -> Result<FeedPage, Error> {
        self.call(Method::GET, &self.events_target(after), None).await
    }

    /// Beside the call: what writes the query must not be held while it waits, or no task could be spawned of it.
    fn events_target(&self, after: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("applicationUUID", self.application_uuid());
        if let Some(after) = after {
            query.append_pair("after", after);
        }
        format!("/svcpartner/events?{}", query.finish())
    }
}
