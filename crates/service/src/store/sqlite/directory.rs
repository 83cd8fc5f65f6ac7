//! Partners and applications on SQLite.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::{Sqlite, execute, row, rows};
use crate::domain::{ApplicationId, Author, Chaos, ClientId};
use crate::store::directory::{
    APPLICATION_COLUMNS, ApplicationRow, Note, PARTNER_COLUMNS, PartnerRow,
};
use crate::store::{
    Directory, NewApplication, NewPartner, PartnerState, Result, Rotation, StoreError,
    WebhookRotation,
};

impl Sqlite {
    pub(in crate::store) async fn directory_version(&self) -> Result<i64> {
        self.reader.run(version).await
    }

    pub(in crate::store) async fn directory(&self) -> Result<Directory> {
        self.reader
            .run(|db| {
                // One read transaction, so that version and rows belong together.
                let _snapshot = Snapshot::begin(db)?;
                let partners = format!("select {PARTNER_COLUMNS} from partners order by id");
                let applications =
                    format!("select {APPLICATION_COLUMNS} from applications order by id");
                Ok(Directory {
                    version: version(db)?,
                    partners: rows(db, &partners, [], partner_row)?
                        .into_iter()
                        .map(PartnerRow::read)
                        .collect::<Result<_>>()?,
                    applications: rows(db, &applications, [], application_row)?
                        .into_iter()
                        .map(ApplicationRow::read)
                        .collect::<Result<_>>()?,
                })
            })
            .await
    }

    pub(in crate::store) async fn create_partner(&self, new: NewPartner) -> Result<()> {
        self.writer
            .run_compound(move |db| {
                let added = execute(
                    db,
                    "insert into partners (name, client_id, state, secret_hash, epoch, created_at_ms)
                     values (?1, ?2, 'active', ?3, 1, ?4) on conflict do nothing",
                    params![new.name, new.client_id.as_str(), new.secret_hash, new.at.as_millisecond()],
                )?;
                if added == 0 {
                    return Err(StoreError::Taken("the client id"));
                }
                note(db, &Note::partner("partner.create", &new.client_id, new.at, &Author::command_line()))?;
                insert_application(db, &new.application)
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
        let (client, by) = (client.clone(), by.clone());
        self.writer
            .run_compound(move |db| {
                let changed = execute(
                    db,
                    "update partners set state = ?1,
                         epoch = epoch + case when state = ?1 then 0 else 1 end
                     where client_id = ?2",
                    params![state.as_str(), client.as_str()],
                )?;
                known(changed, "the client id")?;
                note(db, &Note::partner(state.action(), &client, at, &by))
            })
            .await
    }

    pub(in crate::store) async fn rotate_partner_secret(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<()> {
        let client = client.clone();
        self.writer
            .run_compound(move |db| {
                let changed = execute(
                    db,
                    "update partners set previous_secret_hash = secret_hash,
                         previous_secret_until_ms = ?1, secret_hash = ?2, epoch = epoch + 1
                     where client_id = ?3",
                    params![
                        rotation.previous_until.as_millisecond(),
                        rotation.secret,
                        client.as_str()
                    ],
                )?;
                known(changed, "the client id")?;
                note(
                    db,
                    &Note::partner("partner.rotate_secret", &client, rotation.at, &rotation.by),
                )
            })
            .await
    }

    pub(in crate::store) async fn create_application(&self, new: NewApplication) -> Result<()> {
        self.writer.run_compound(move |db| insert_application(db, &new)).await
    }

    pub(in crate::store) async fn rotate_webhook_secret(
        &self,
        uuid: &str,
        rotation: WebhookRotation,
    ) -> Result<()> {
        let uuid = uuid.to_owned();
        self.writer
            .run_compound(move |db| {
                let changed = execute(
                    db,
                    // A secret that never signed alone is not the previous one.
                    "update applications set
                         previous_webhook_secret = case when webhook_secret_switch_at_ms > ?5
                             then previous_webhook_secret else webhook_secret end,
                         previous_webhook_secret_until_ms = ?1, webhook_secret = ?2,
                         webhook_secret_switch_at_ms = ?4
                     where uuid = ?3",
                    params![
                        rotation.previous_until.as_millisecond(),
                        rotation.secret,
                        uuid,
                        rotation.switch_at.as_millisecond(),
                        rotation.at.as_millisecond(),
                    ],
                )?;
                known(changed, "the application")?;
                note(
                    db,
                    &Note::application(
                        "application.rotate_webhook_secret",
                        &uuid,
                        rotation.at,
                        &rotation.by,
                    ),
                )
            })
            .await
    }

    pub(in crate::store) async fn set_chaos(
        &self,
        application: ApplicationId,
        chaos: Option<Chaos>,
    ) -> Result<()> {
        self.writer
            .run_compound(move |db| {
                let text = chaos.as_ref().map(Chaos::to_text);
                let sql = "update applications set chaos = ?2 where id = ?1";
                known(execute(db, sql, params![application.0, text])?, "the application")?;
                raise_version(db)
            })
            .await
    }
}

fn insert_application(db: &Connection, new: &NewApplication) -> Result<()> {
    let partner: Option<i64> =
        row(db, "select id from partners where client_id = ?1", [new.partner.as_str()], |row| {
            row.get(0)
        })?;
    let partner = partner.ok_or(StoreError::Unknown("the client id"))?;
    let added = execute(
        db,
        "insert into applications (partner_id, uuid, name, webhook_secret, pending_event,
             created_at_ms)
         values (?1, ?2, ?3, ?4, ?5, ?6) on conflict do nothing",
        params![
            partner,
            new.uuid.as_str(),
            new.name,
            new.sealed_webhook_secret,
            new.pending_event.as_str(),
            new.at.as_millisecond(),
        ],
    )?;
    if added == 0 {
        return Err(StoreError::Taken("the application"));
    }
    note(
        db,
        &Note::application(
            "application.create",
            new.uuid.as_str(),
            new.at,
            &Author::command_line(),
        ),
    )
}

/// Every change of the directory leaves an audit row and raises the version the nodes watch.
fn note(db: &Connection, note: &Note<'_>) -> Result<()> {
    execute(
        db,
        "insert into audit (at_ms, actor, action, subject, cause, request_id)
         values (?1, ?2, ?3, ?4, '', ?5)",
        params![
            note.at.as_millisecond(),
            note.by.actor.to_string(),
            note.action,
            note.subject,
            note.by.request_id,
        ],
    )?;
    raise_version(db)
}

fn raise_version(db: &Connection) -> Result<()> {
    execute(
        db,
        "insert into settings (key, value) values ('directory_version', '1')
         on conflict (key) do update set value = cast(cast(value as integer) + 1 as text)",
        [],
    )
    .map(drop)
}

fn version(db: &Connection) -> Result<i64> {
    let sql = "select cast(value as integer) from settings where key = 'directory_version'";
    Ok(row(db, sql, [], |row| row.get(0))?.unwrap_or(0))
}

fn known(changed: usize, what: &'static str) -> Result<()> {
    if changed == 0 { Err(StoreError::Unknown(what)) } else { Ok(()) }
}

fn partner_row(row: &Row<'_>) -> rusqlite::Result<PartnerRow> {
    Ok(PartnerRow {
        id: row.get(0)?,
        name: row.get(1)?,
        client_id: row.get(2)?,
        state: row.get(3)?,
        secret_hash: row.get(4)?,
        previous_secret_hash: row.get(5)?,
        previous_secret_until_ms: row.get(6)?,
        epoch: row.get(7)?,
        created_at_ms: row.get(8)?,
    })
}

fn application_row(row: &Row<'_>) -> rusqlite::Result<ApplicationRow> {
    Ok(ApplicationRow {
        id: row.get(0)?,
        partner_id: row.get(1)?,
        uuid: row.get(2)?,
        name: row.get(3)?,
        webhook_secret: row.get(4)?,
        previous_webhook_secret: row.get(5)?,
        previous_webhook_secret_until_ms: row.get(6)?,
        webhook_secret_switch_at_ms: row.get(7)?,
        pending_event: row.get(8)?,
        created_at_ms: row.get(9)?,
        chaos: row.get(10)?,
    })
}

/// A read transaction that ends with its scope.
struct Snapshot<'a>(&'a Connection);

impl<'a> Snapshot<'a> {
    fn begin(db: &'a Connection) -> Result<Self> {
        execute(db, "begin deferred", [])?;
        Ok(Self(db))
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let _ = execute(self.0, "rollback", []);
    }
}
