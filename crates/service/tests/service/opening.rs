//! Opening a store: what is refused, what several may do at once, what an earlier life left behind.

use super::store::created;
use crate::support::{TestDatabase, new_order, options, payment_of, waiting_events};
use svc_service::app::App;
use svc_service::config::Config;
use svc_service::domain::Environment;
use svc_service::store::{Database, Options, Store};
use svc_service::webhook::Dispatcher;
use svc_service::{audit, credentials, orders};

#[tokio::test(flavor = "multi_thread")]
async fn production_refuses_a_server_that_can_lose_commits() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { name, .. } = &database else { unreachable!() };
    database.sql(&format!("alter database {name} set synchronous_commit = off")).await;
    let production = options(Some(Environment::Production));
    let refused = Store::open(&database.database(), production).await.err().unwrap();
    assert!(refused.to_string().contains("synchronous_commit off"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_find_one_migrated_database() {
    let database = TestDatabase::postgres().await;
    let (a, b, c) = tokio::join!(database.store(), database.store(), database.store());
    created(&a, new_order(1, "order_1")).await;
    created(&b, new_order(1, "order_2")).await;
    created(&c, new_order(1, "order_3")).await;
}

/// As docs/operate.md says.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_cannot_change_the_history_serves() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { name, .. } = &database else { unreachable!() };
    drop(database.store().await);
    let role = format!("{name}_node");
    database
        .sql(&format!(
            "create role {role} login connection limit 80;
             grant create, usage on schema public to {role};
             grant select, insert, update, delete on all tables in schema public to {role};
             grant usage on all sequences in schema public to {role};
             revoke update, delete on audit, audit_seals from {role}"
        ))
        .await;
    let url = database.url().replace("//svc@", &format!("//{role}@"));
    let mut config = Config::sandbox(([127, 0, 0, 1], 0).into());
    config.private_webhook_targets = true;
    let app = App::open(config, &Database::parse(&url).unwrap()).await.unwrap();
    credentials::create_partner(&app, "Loja").await.unwrap();
    let order = created(&app.store, new_order(1, "order_1")).await;
    orders::settle(&app, payment_of(&order), "req-pay").await.unwrap();
    Dispatcher::new(app.clone()).unwrap().drain().await.unwrap();
    assert_eq!(waiting_events(&app.store).await, 1, "nobody listens, and it is tried again");
    audit::seal_up_to(&app, app.store.last_audit_id().await.unwrap()).await.unwrap();
    assert!(database.count("audit_seals").await > 0);
    let (node, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for change in [
        "update audit set actor = 'nobody'",
        "delete from audit",
        "delete from audit_seals",
        "alter table audit add column x text",
        "drop table audit",
    ] {
        assert!(node.batch_execute(change).await.is_err(), "{change}");
    }
    drop((app, node));
    database.sql(&format!("drop owned by {role}; drop role {role}")).await;
}

/// Whoever waits for a table keeps all others waiting who come after.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_waits_for_no_table_for_long_and_goes_on_at_the_next_start() {
    let database = TestDatabase::postgres().await;
    let holder = database.connection().await;
    holder.batch_execute("begin; create table settings (key text)").await.unwrap();
    let refused = Store::open(&database.database(), options(None)).await.err().unwrap();
    assert!(refused.to_string().contains("lock timeout"), "{refused}");
    holder.batch_execute("rollback").await.unwrap();
    created(&database.store().await, new_order(1, "order_1")).await;
}

/// A host that is gone may neither refuse nor answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_says_nothing_does_not_hide_the_next() {
    let database = TestDatabase::postgres().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = database.url().replace('@', &format!("@{},", silent.local_addr().unwrap()));
    let both = Database::parse(&url).unwrap();
    let store = Store::open(&both, options(Some(Environment::Sandbox))).await.unwrap();
    created(&store, new_order(1, "order_1")).await;
}

#[test]
fn a_second_service_on_one_sqlite_file_is_refused() {
    let database = TestDatabase::sqlite();
    let lock = database.database().lock_for_service().unwrap();
    let refused = database.database().lock_for_service().unwrap_err();
    assert!(refused.to_string().contains("another svc is using"), "{refused}");
    drop(lock);
    std::fs::File::create(database.path()).unwrap();
    let link = database.path().with_file_name("link.db");
    std::os::unix::fs::symlink(database.path(), &link).unwrap();
    let by_link = Database::parse(&format!("sqlite:{}", link.display())).unwrap();
    let _lock = by_link.lock_for_service().unwrap();
    database.database().lock_for_service().unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_sqlite_file_is_made_only_when_asked_for() {
    let database = TestDatabase::sqlite();
    let strict = Options { create: false, ..options(None) };
    let refused = Store::open(&database.database(), strict).await.err().unwrap();
    assert!(refused.to_string().contains("svc migrate"), "{refused}");
}

#[tokio::test]
async fn what_a_killed_service_left_in_the_log_is_in_the_file_after_the_next_start() {
    let (database, left) = (TestDatabase::sqlite(), TestDatabase::sqlite());
    let store = database.store().await;
    let order = created(&store, new_order(1, "order_1")).await;
    // As a kill leaves them: the file, and the log that nobody copied back.
    for end in ["", "-wal"] {
        let of = |database: &TestDatabase| format!("{}{end}", database.path().display());
        std::fs::copy(of(&database), of(&left)).unwrap();
    }
    let without_log = || {
        let file = format!("file:{}?immutable=1", left.path().display());
        let flags =
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_URI;
        let file = rusqlite::Connection::open_with_flags(file, flags).unwrap();
        let found = "select count(*) from orders where reference_number = ?1";
        file.query_row(found, [order.reference_number.as_str()], |row| row.get::<_, i64>(0))
            .unwrap_or(0)
    };
    assert_eq!(without_log(), 0);
    let _next = left.store().await;
    assert_eq!(without_log(), 1);
}
