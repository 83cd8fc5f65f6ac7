//! Partners and applications: how they change, and how a row of them is read.

use jiff::Timestamp;

use super::audit::audited;
use super::portable::{Cells, Statement, each, values};
use super::{
    Application, Directory, NewApplication, NewPartner, Partner, PartnerState, PendingEvent,
    PreviousWebhookSecret, Result, Rotation, Store, StoreError, WebhookRotation,
};
use crate::domain::{
    ApplicationId, ApplicationUuid, Author, Chaos, ClientId, PartnerId, WebhookHosts,
};

impl Store {
    /// Changes with every change of a partner or an application.
    pub async fn directory_version(&self) -> Result<i64> {
        let [found] = self.read([version()]).await?;
        Ok(each(found, Cells::integer)?.pop().unwrap_or(0))
    }

    /// All partners and applications. Whoever changes one while they are read raises the version beyond the one
    /// that was read first.
    pub async fn directory(&self) -> Result<Directory> {
        let applications = format!("select {APPLICATION_COLUMNS} from applications order by id");
        let partners = format!("select {PARTNER_COLUMNS} from partners order by id");
        let all = |sql| Statement::new(sql, values![]);
        let [found, applications, partners] =
            self.read([version(), all(applications), all(partners)]).await?;
        Ok(Directory {
            version: each(found, Cells::integer)?.pop().unwrap_or(0),
            partners: each(partners, partner)?,
            applications: each(applications, application)?,
        })
    }

    /// With its first application.
    pub async fn create_partner(&self, new: NewPartner) -> Result<()> {
        let (client, application) = (new.client_id.as_str(), &new.application);
        let insert =
            "insert into partners (name, client_id, state, secret_hash, epoch, created_at_ms)
                      select ?1, ?2, 'active', ?3, 1, ?4
                      where not exists (select 1 from applications where uuid = ?5)
                      on conflict do nothing";
        let given = values![&*new.name, client, new.secret_hash, new.at, application.uuid.as_str()];
        let by = Author::command_line(None);
        let mut statements = vec![
            Statement::new(insert, given),
            audited(new.at, &by, "partner.create", client, None, ""),
        ];
        statements.extend(creation(application));
        if self.transact(statements).await? {
            return Ok(());
        }
        let taken =
            if self.knows(&new.client_id).await? { "the client id" } else { "the application" };
        Err(StoreError::Taken(taken))
    }

    pub async fn create_application(&self, new: NewApplication) -> Result<()> {
        match self.transact(creation(&new).into()).await? {
            true => Ok(()),
            false if self.knows(&new.partner).await? => Err(StoreError::Taken("the application")),
            false => Err(StoreError::Unknown("the client id")),
        }
    }

    async fn knows(&self, client: &ClientId) -> Result<bool> {
        let sql = "select id from partners where client_id = ?1";
        let found = self.select_one(Statement::new(sql, values![client.as_str()]), Cells::integer);
        Ok(found.await?.is_some())
    }

    /// Switches a partner on or off. Off also kills every token it holds.
    pub async fn set_partner_state(
        &self,
        client: &ClientId,
        state: PartnerState,
        at: Timestamp,
        by: &Author,
    ) -> Result<()> {
        let sql = "update partners set state = ?1,
                       epoch = epoch + case when state = ?1 then 0 else 1 end
                   where client_id = ?2";
        let set = Statement::new(sql, values![state.as_str(), client.as_str()]);
        let note = audited(at, by, state.action(), client.as_str(), None, "");
        self.change(set, Some(note), "the client id").await
    }

    /// A new secret; the old one stays good until `rotation.previous_until`, old tokens die now. Not, unless
    /// `anyway`, while the one before still works, which would end at once; whether it was done.
    pub async fn rotate_partner_secret(
        &self,
        client: &ClientId,
        rotation: Rotation,
        anyway: bool,
    ) -> Result<bool> {
        let Rotation { secret, previous_until, at, by } = rotation;
        let sql = "update partners set previous_secret_until_ms = ?1,
                       previous_secret_hash = case when cast(?1 as bigint) is not null
                           then secret_hash end,
                       secret_hash = ?2, epoch = epoch + 1
                   where client_id = ?3 and coalesce(previous_secret_until_ms, ?4) <= ?4";
        let ended_by = if anyway { Timestamp::MAX } else { at };
        self.transact(vec![
            Statement::new(sql, values![previous_until, secret, client.as_str(), ended_by]),
            raise_version(),
            audited(at, &by, "partner.rotate_secret", client.as_str(), None, ""),
        ])
        .await
    }

    /// The client secret before the present one stops working now, and so do tokens: some may be of that one.
    pub async fn revoke_previous_secret(
        &self,
        client: &ClientId,
        at: Timestamp,
        by: &Author,
    ) -> Result<bool> {
        let sql = "update partners set previous_secret_hash = null,
                       previous_secret_until_ms = null, epoch = epoch + 1
                   where client_id = ?1 and previous_secret_hash is not null";
        self.transact(vec![
            Statement::new(sql, values![client.as_str()]),
            raise_version(),
            audited(at, by, "partner.revoke_previous_secret", client.as_str(), None, ""),
        ])
        .await
    }

    pub async fn rotate_webhook_secret(&self, uuid: &str, rotation: WebhookRotation) -> Result<()> {
        let WebhookRotation { secret, switch_at, previous_until, at, by } = rotation;
        // A secret that never signed alone is not the previous one.
        let sql = "update applications set previous_webhook_secret_until_ms = ?1,
                       previous_webhook_secret = case when cast(?1 as bigint) is null then null
                           when webhook_secret_switch_at_ms > ?5 then previous_webhook_secret
                           else webhook_secret end,
                       webhook_secret = ?2, webhook_secret_switch_at_ms = ?4
                   where uuid = ?3";
        let rotate = Statement::new(sql, values![previous_until, secret, uuid, switch_at, at]);
        let note = audited(at, &by, "application.rotate_webhook_secret", uuid, None, "");
        self.change(rotate, Some(note), "the application").await
    }

    /// Where an application's webhooks may go; `None` lets them go to any public host.
    pub async fn set_webhook_hosts(
        &self,
        uuid: &ApplicationUuid,
        hosts: Option<&WebhookHosts>,
        at: Timestamp,
        by: &Author,
    ) -> Result<()> {
        let sql = "update applications set webhook_hosts = ?2 where uuid = ?1";
        let (uuid, text) = (uuid.as_str(), hosts.map(WebhookHosts::to_string));
        let note = audited(at, by, "application.webhook_hosts", uuid, text.as_deref(), "");
        let set = Statement::new(sql, values![uuid, text]);
        self.change(set, Some(note), "the application").await
    }

    /// How the sandbox disturbs the webhooks of an application; `None` lets them go.
    pub async fn set_chaos(&self, application: ApplicationId, chaos: Option<Chaos>) -> Result<()> {
        let sql = "update applications set chaos = ?2 where id = ?1";
        let text = chaos.as_ref().map(Chaos::to_text);
        let set = Statement::new(sql, values![application.0, text]);
        self.change(set, None, "the application").await
    }

    async fn change(
        &self,
        change: Statement,
        note: Option<Statement>,
        what: &'static str,
    ) -> Result<()> {
        let statements = [change, raise_version()].into_iter().chain(note);
        match self.transact(statements.collect()).await? {
            true => Ok(()),
            false => Err(StoreError::Unknown(what)),
        }
    }
}

/// Changes nothing if there is no such partner, or the application exists.
fn creation(new: &NewApplication) -> [Statement; 3] {
    let insert = "insert into applications (partner_id, uuid, name, webhook_secret, pending_event,
                      created_at_ms)
                  select id, ?2, ?3, ?4, ?5, ?6 from partners where client_id = ?1
                  on conflict do nothing";
    let (uuid, pending_event) = (new.uuid.as_str(), new.pending_event.as_str());
    let given = values![
        new.partner.as_str(),
        uuid,
        &*new.name,
        new.sealed_webhook_secret.clone(),
        pending_event,
        new.at,
    ];
    let by = Author::command_line(None);
    [
        Statement::new(insert, given),
        raise_version(),
        audited(new.at, &by, "application.create", uuid, None, ""),
    ]
}

fn version() -> Statement {
    let sql = "select cast(value as bigint) from settings where key = 'directory_version'";
    Statement::new(sql, values![])
}

/// The nodes watch it.
fn raise_version() -> Statement {
    let sql = "insert into settings (key, value) values ('directory_version', '1')
               on conflict (key) do update
               set value = cast(cast(settings.value as bigint) + 1 as text)";
    Statement::new(sql, values![])
}

const PARTNER_COLUMNS: &str = "id, name, client_id, state, secret_hash, \
     previous_secret_hash, previous_secret_until_ms, epoch, created_at_ms";

const APPLICATION_COLUMNS: &str = "id, partner_id, uuid, name, webhook_secret, \
     previous_webhook_secret, previous_webhook_secret_until_ms, webhook_secret_switch_at_ms, \
     pending_event, created_at_ms, chaos, webhook_hosts";

impl PartnerState {
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Active => "partner.enable",
            Self::Disabled => "partner.disable",
        }
    }
}

fn partner(cells: &mut Cells) -> Result<Partner> {
    Ok(Partner {
        id: PartnerId(cells.integer()?),
        name: cells.text()?,
        client_id: ClientId::parse(cells.text()?)
            .map_err(|fault| StoreError::Corrupt(format!("client id: {fault}")))?,
        state: PartnerState::read(&cells.text()?)?,
        secret_hash: cells.bytes()?,
        previous_secret: cells.maybe_bytes()?.zip(cells.maybe_time()?),
        epoch: cells.integer()?,
        created_at: cells.time()?,
    })
}

fn application(cells: &mut Cells) -> Result<Application> {
    Ok(Application {
        id: ApplicationId(cells.integer()?),
        partner: PartnerId(cells.integer()?),
        uuid: ApplicationUuid::parse(cells.text()?)
            .map_err(|fault| StoreError::Corrupt(format!("application uuid: {fault}")))?,
        name: cells.text()?,
        webhook_secret: cells.bytes()?,
        previous_webhook_secret: previous_webhook_secret(cells)?,
        pending_event: PendingEvent::read(&cells.text()?)?,
        created_at: cells.time()?,
        chaos: cells.maybe_text()?.as_deref().and_then(Chaos::from_text),
        webhook_hosts: cells.maybe_text()?.as_deref().map(WebhookHosts::restore),
    })
}

fn previous_webhook_secret(cells: &mut Cells) -> Result<Option<PreviousWebhookSecret>> {
    let previous = cells.maybe_bytes()?.zip(cells.maybe_time()?);
    // Rotated before there was a choice: the new secret took over at once.
    let switch_at = cells.maybe_time()?.unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(previous.map(|(sealed, until)| PreviousWebhookSecret { sealed, switch_at, until }))
}
