//! What both engines say alike about partners and applications.

use jiff::Timestamp;

use super::{
    Application, Partner, PartnerState, PendingEvent, PreviousWebhookSecret, Result, StoreError,
    time,
};
use crate::domain::{ApplicationId, ApplicationUuid, Author, Chaos, ClientId, PartnerId};

pub(super) const PARTNER_COLUMNS: &str = "id, name, client_id, state, secret_hash, \
     previous_secret_hash, previous_secret_until_ms, epoch, created_at_ms";

pub(super) const APPLICATION_COLUMNS: &str = "id, partner_id, uuid, name, webhook_secret, \
     previous_webhook_secret, previous_webhook_secret_until_ms, webhook_secret_switch_at_ms, \
     pending_event, created_at_ms, chaos";

/// The audit row of a change of the directory.
pub(super) struct Note<'a> {
    pub action: &'static str,
    pub subject: &'a str,
    pub at: Timestamp,
    pub by: &'a Author,
}

impl<'a> Note<'a> {
    pub(super) fn partner(
        action: &'static str,
        client: &'a ClientId,
        at: Timestamp,
        by: &'a Author,
    ) -> Self {
        Self { action, subject: client.as_str(), at, by }
    }

    pub(super) fn application(
        action: &'static str,
        uuid: &'a str,
        at: Timestamp,
        by: &'a Author,
    ) -> Self {
        Self { action, subject: uuid, at, by }
    }
}

impl PartnerState {
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Active => "partner.enable",
            Self::Disabled => "partner.disable",
        }
    }
}

pub(super) struct PartnerRow {
    pub id: i64,
    pub name: String,
    pub client_id: String,
    pub state: String,
    pub secret_hash: Vec<u8>,
    pub previous_secret_hash: Option<Vec<u8>>,
    pub previous_secret_until_ms: Option<i64>,
    pub epoch: i64,
    pub created_at_ms: i64,
}

impl PartnerRow {
    pub(super) fn read(self) -> Result<Partner> {
        Ok(Partner {
            id: PartnerId(self.id),
            name: self.name,
            client_id: ClientId::parse(self.client_id)
                .map_err(|fault| StoreError::Corrupt(format!("client id: {fault}")))?,
            state: PartnerState::read(&self.state)?,
            secret_hash: self.secret_hash,
            previous_secret: previous(self.previous_secret_hash, self.previous_secret_until_ms)?,
            epoch: self.epoch,
            created_at: time(self.created_at_ms)?,
        })
    }
}

pub(super) struct ApplicationRow {
    pub id: i64,
    pub partner_id: i64,
    pub uuid: String,
    pub name: String,
    pub webhook_secret: Vec<u8>,
    pub previous_webhook_secret: Option<Vec<u8>>,
    pub previous_webhook_secret_until_ms: Option<i64>,
    pub webhook_secret_switch_at_ms: Option<i64>,
    pub pending_event: String,
    pub created_at_ms: i64,
    pub chaos: Option<String>,
}

impl ApplicationRow {
    pub(super) fn read(self) -> Result<Application> {
        Ok(Application {
            id: ApplicationId(self.id),
            partner: PartnerId(self.partner_id),
            uuid: ApplicationUuid::parse(self.uuid)
                .map_err(|fault| StoreError::Corrupt(format!("application uuid: {fault}")))?,
            name: self.name,
            webhook_secret: self.webhook_secret,
            previous_webhook_secret: previous(
                self.previous_webhook_secret,
                self.previous_webhook_secret_until_ms,
            )?
            .map(|(sealed, until)| -> Result<_> {
                // Rotated before there was a choice: the new secret took over at once.
                let switch_at = time(self.webhook_secret_switch_at_ms.unwrap_or(0))?;
                Ok(PreviousWebhookSecret { sealed, switch_at, until })
            })
            .transpose()?,
            pending_event: PendingEvent::read(&self.pending_event)?,
            chaos: self.chaos.as_deref().and_then(Chaos::from_text),
            created_at: time(self.created_at_ms)?,
        })
    }
}

fn previous(
    secret: Option<Vec<u8>>,
    until_ms: Option<i64>,
) -> Result<Option<(Vec<u8>, Timestamp)>> {
    secret.zip(until_ms).map(|(secret, until_ms)| Ok((secret, time(until_ms)?))).transpose()
}
