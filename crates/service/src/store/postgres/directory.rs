//! Reading partners and applications on PostgreSQL, beside whatever else is looked at.

use tokio_postgres::Row;

use super::{Fault, Postgres, many, one};
use crate::store::directory::{APPLICATION_COLUMNS, ApplicationRow, PARTNER_COLUMNS, PartnerRow};
use crate::store::{Directory, Result};

impl Postgres {
    pub(in crate::store) async fn directory_version(&self) -> Result<i64> {
        let row = one(&self.client().await?, VERSION, &[]).await?;
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
            let version = one(&tx, VERSION, &[]).await?.map_or(0, |row| row.get(0));
            let partners = format!("select {PARTNER_COLUMNS} from partners order by id");
            let applications =
                format!("select {APPLICATION_COLUMNS} from applications order by id");
            let partners = many(&tx, &partners, &[]).await?;
            let applications = many(&tx, &applications, &[]).await?;
            Ok::<_, Fault>((version, partners, applications))
        };
        let (version, partners, applications) = read.await?;
        Ok(Directory {
            version,
            partners: partners.iter().map(|row| partner_row(row).read()).collect::<Result<_>>()?,
            applications: applications
                .iter()
                .map(|row| application_row(row).read())
                .collect::<Result<_>>()?,
        })
    }
}

const VERSION: &str = "select value::bigint from settings where key = 'directory_version'";

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
