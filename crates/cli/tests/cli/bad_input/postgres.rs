//! A PostgreSQL database that exists for one test.

use tokio_postgres::NoTls;

use super::running::{is_kept, unique};

pub(crate) struct Postgres {
    server: String,
    name: String,
}

impl Postgres {
    pub(crate) fn new() -> Self {
        let server = std::env::var("SVC_TEST_DATABASE_URL")
            .expect("no PostgreSQL for this test: run it through dev/with-postgres, or ./test");
        let name = format!("svc_bad_input_{}", unique());
        execute(&server, &format!("create database {name}"));
        Self { server, name }
    }

    pub(crate) fn url(&self) -> String {
        let (base, _) = self.server.rsplit_once('/').expect("the URL ends in a database");
        format!("{base}/{}", self.name)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if !is_kept() {
            execute(&self.server, &format!("drop database if exists {} with (force)", self.name));
        }
    }
}

fn execute(server: &str, statement: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(server, NoTls).await.expect("PostgreSQL answers");
        let connection = tokio::spawn(connection);
        client.batch_execute(statement).await.expect("the statement is right");
        drop(client);
        let _ = connection.await;
    });
}
