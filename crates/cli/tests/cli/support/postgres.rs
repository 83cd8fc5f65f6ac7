//! A PostgreSQL database for one test.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::NoTls;

use crate::support::{Folder, Place, is_kept};

/// A PostgreSQL database of one test, dropped afterwards.
pub(crate) struct FreshDatabase {
    server: String,
    name: String,
}

impl FreshDatabase {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = std::env::var("SVC_TEST_DATABASE_URL").expect(
            "this test needs PostgreSQL: run it as dev/with-postgres cargo test, or set \
             SVC_TEST_DATABASE_URL",
        );
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("svc_test_{}_{count}", std::process::id());
        execute(&server, &format!("create database {name}"))
            .expect("the PostgreSQL of SVC_TEST_DATABASE_URL can make a database");
        Self { server, name }
    }

    pub(crate) fn place(&self) -> Place {
        let (server, _) = self.server.rsplit_once('/').expect("the URL ends in a database");
        Place { database: format!("{server}/{}", self.name), folder: Folder::new() }
    }
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        if !is_kept() {
            let _ = execute(&self.server, &format!("drop database {} with (force)", self.name));
        }
    }
}

pub(crate) fn execute(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(sql).await
    })
}
