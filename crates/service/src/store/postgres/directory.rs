//! Partners and applications on PostgreSQL.

use jiff::Timestamp;
use tokio_postgres::{Row, Transaction};

use super::{Fault, Postgres};
use crate::domain::{ApplicationId, Author, Chaos, ClientId};
use crate::store::directory::{
    APPLICATION_COLUMNS, ApplicationRow, Note, PARTNER_COLUMNS, PartnerRow,
};
use crate::store::{
    Directory, NewApplication, NewPartner, PartnerState, Result, Rotation, StoreError,
    WebhookRotation,
};

type Outcome<T> = std::result::Result<T, Fault>;

impl Postgres {
    pub(in crate::store) async fn directory_version(&self) -> Result<i64> {
        let row = self.client().await?.query_opt(VERSION, &[]).await.map_err(Fault::from)?;
        Ok(row.map_or(0, |row| row.get(0)))
    }

    pub(in crate::store) async fn directory(&self) -> Result<Directory> {
        let mut db = self.client().await?;
        let read = async {
            // One snapshot, so that version and rows belong together.
            let tx = db
                .build_transaction()
                .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
                .read_only(true)
                .start()
                .await?;
            let version = tx.query_opt(VERSION, &[]).await?.map_or(0, |row| row.get(0));
            let partners = format!("select {PARTNER_COLUMNS} from partners order by id");
            let applications =
                format!("select {APPLICATION_COLUMNS} from applications order by id");
            let partners = tx.query(&partners, &[]).await?;
            let applications = tx.query(&applications, &[]).await?;
            Ok::<_, tokio_postgres::Error>((version, partners, applications))
        };
        let (version, partners, applications) = read.await.map_err(Fault::from)?;
        Ok(Directory {
            version,
            partners: partners.iter().map(|row| partner_row(row).read()).collect::<Result<_>>()?,
            applications: applications
                .iter()
                .map(|row| application_row(row).read())
                .collect::<Result<_>>()?,
        })
    }

    pub(in crate::store) async fn create_partner(&self, new: NewPartner) -> Result<()> {
        self.change(async |tx| {
            let added = tx
                .execute(
                    "insert into partners (name, client_id, state, secret_hash, epoch, created_at_ms)
                     values ($1, $2, 'active', $3, 1, $4) on conflict do nothing",
                    &[&new.name, &new.client_id.as_str(), &new.secret_hash, &new.at.as_millisecond()],
                )
                .await?;
            if added == 0 {
                return Err(StoreError::Taken("the client id").into());
            }
            note(tx, &Note::partner("partner.create", &new.client_id, new.at, &Author::command_line())).await?;
            insert_application(tx, &new.application).await
        })
        .await
    }

    pub(in crate::store) async fn set_partner_state(
        &self,
        client: &ClientId,
        state: PartnerState,
        at: Timestamp,
        by: &Author,
    ) -> Result<()> {
        self.change(async |tx| {
            let changed = tx
                .execute(
                    "update partners set state = $1,
                         epoch = epoch + case when state = $1 then 0 else 1 end
                     where client_id = $2",
                    &[&state.as_str(), &client.as_str()],
                )
                .await?;
            known(changed, "the client id")?;
            note(tx, &Note::partner(state.action(), client, at, by)).await
        })
        .await
    }

    pub(in crate::store) async fn rotate_partner_secret(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<()> {
        self.change(async |tx| {
            let changed = tx
                .execute(
                    "update partners set previous_secret_hash = secret_hash,
                         previous_secret_until_ms = $1, secret_hash = $2, epoch = epoch + 1
                     where client_id = $3",
                    &[
                        &rotation.previous_until.as_millisecond(),
                        &rotation.secret,
                        &client.as_str(),
                    ],
                )
                .await?;
            known(changed, "the client id")?;
            note(tx, &Note::partner("partner.rotate_secret", client, rotation.at, &rotation.by))
                .await
        })
        .await
    }

    pub(in crate::store) async fn create_application(&self, new: NewApplication) -> Result<()> {
        self.change(async |tx| insert_application(tx, &new).await).await
    }

    pub(in crate::store) async fn rotate_webhook_secret(
        &self,
        uuid: &str,
        rotation: WebhookRotation,
    ) -> Result<()> {
        self.change(async |tx| {
            let changed = tx
                .execute(
                    // A secret that never signed alone is not the previous one.
                    "update applications set
                         previous_webhook_secret = case when webhook_secret_switch_at_ms > $5
                             then previous_webhook_secret else webhook_secret end,
                         previous_webhook_secret_until_ms = $1, webhook_secret = $2,
                         webhook_secret_switch_at_ms = $4
                     where uuid = $3",
                    &[
                        &rotation.previous_until.as_millisecond(),
                        &rotation.secret,
                        &uuid,
                        &rotation.switch_at.as_millisecond(),
                        &rotation.at.as_millisecond(),
                    ],
                )
                .await?;
            known(changed, "the application")?;
            note(
                tx,
                &Note::application(
                    "application.rotate_webhook_secret",
                    uuid,
                    rotation.at,
                    &rotation.by,
                ),
            )
            .await
        })
        .await
    }

    pub(in crate::store) async fn set_chaos(
        &self,
        application: ApplicationId,
        chaos: Option<Chaos>,
    ) -> Result<()> {
        self.change(async |tx| {
            let text = chaos.as_ref().map(Chaos::to_text);
            let sql = "update applications set chaos = $2 where id = $1";
            let changed = tx.execute(sql, &[&application.0, &text]).await?;
            known(changed, "the application")?;
            raise_version(tx).await
        })
        .await
    }

    /// One transaction around a change of the directory; an error takes everything back.
    async fn change(&self, work: impl AsyncFnOnce(&Transaction<'_>) -> Outcome<()>) -> Result<()> {
        let mut db = self.client().await?;
        let tx = db.build_transaction().start().await.map_err(Fault::from)?;
        work(&tx).await?;
        tx.commit().await.map_err(|fault| Fault::from(fault).into())
    }
}

const VERSION: &str = "select value::bigint from settings where key = 'directory_version'";

async fn insert_application(tx: &Transaction<'_>, new: &NewApplication) -> Outcome<()> {
    let partner = tx
        .query_opt("select id from partners where client_id = $1", &[&new.partner.as_str()])
        .await?
        .ok_or(StoreError::Unknown("the client id"))?;
    let added = tx
        .execute(
            "insert into applications (partner_id, uuid, name, webhook_secret, pending_event,
                 created_at_ms)
             values ($1, $2, $3, $4, $5, $6) on conflict do nothing",
            &[
                &partner.get::<_, i64>(0),
                &new.uuid.as_str(),
                &new.name,
                &new.sealed_webhook_secret,
                &new.pending_event.as_str(),
                &new.at.as_millisecond(),
            ],
        )
        .await?;
    if added == 0 {
        return Err(StoreError::Taken("the application").into());
    }
    note(
        tx,
        &Note::application(
            "application.create",
            new.uuid.as_str(),
            new.at,
            &Author::command_line(),
        ),
    )
    .await
}

/// Every change of the directory leaves an audit row and raises the version the nodes watch.
async fn note(tx: &Transaction<'_>, note: &Note<'_>) -> Outcome<()> {
    tx.execute(
        "insert into audit (at_ms, actor, action, subject, cause, request_id)
         values ($1, $2, $3, $4, '', $5)",
        &[
            &note.at.as_millisecond(),
            &note.by.actor.to_string(),
            &note.action,
            &note.subject,
            &note.by.request_id,
        ],
    )
    .await?;
    raise_version(tx).await
}

async fn raise_version(tx: &Transaction<'_>) -> Outcome<()> {
    tx.execute(
        "insert into settings (key, value) values ('directory_version', '1')
         on conflict (key) do update set value = (settings.value::bigint + 1)::text",
        &[],
    )
    .await?;
    Ok(())
}

fn known(changed: u64, what: &'static str) -> Outcome<()> {
    if changed == 0 { Err(StoreError::Unknown(what).into()) } else { Ok(()) }
}

fn partner_row(row: &Row) -> PartnerRow {
    PartnerRow {
        id: row.get(0),
        name: row.get(1),
        client_id: row.get(2),
        state: row.get(3),
        secret_hash: row.get(4),
        previous_secret_hash: row.get(5),
        previous_secret_until_ms: row.get(6),
        epoch: row.get(7),
        created_at_ms: row.get(8),
    }
}

fn application_row(row: &Row) -> ApplicationRow {
    ApplicationRow {
        id: row.get(0),
        partner_id: row.get(1),
        uuid: row.get(2),
        name: row.get(3),
        webhook_secret: row.get(4),
        previous_webhook_secret: row.get(5),
        previous_webhook_secret_until_ms: row.get(6),
        webhook_secret_switch_at_ms: row.get(7),
        pending_event: row.get(8),
        created_at_ms: row.get(9),
        chaos: row.get(10),
    }
}
