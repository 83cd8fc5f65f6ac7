//! The sealed history: whoever edits, removes, adds or moves a row is found out.

use std::collections::HashMap;

use svc_service::app::App;
use svc_service::audit::{self, Fault};
use svc_service::config::Config;
use svc_service::domain::Author;

use crate::support::*;

on_both_engines! {
    every_edit_of_the_history_is_found,
    a_history_cut_off_with_its_seals_is_found_by_the_seal_kept_elsewhere,
    rows_that_are_not_sealed_yet_are_counted,
    two_nodes_that_seal_at_once_leave_one_chain,
}

const ROWS: i64 = 200;
const STRETCHES: i64 = 4;

/// Rows of every shape under four seals, with numbers left out between them.
async fn sealed(database: &TestDatabase) -> App {
    let config = Config::sandbox(([127, 0, 0, 1], 0).into());
    let app = App::open(config, &database.database()).await.unwrap();
    for number in 0..ROWS {
        let by = Author { request_id: format!("req-{number}"), ..Author::command_line(None) };
        let at = app.clock.now();
        let subject = format!("subject-{number}");
        app.store.note(at, &by, "test.note", &subject, "because").await.unwrap();
    }
    database.sql("update audit set before = 'PEN', after = 'CON' where id % 3 = 0").await;
    database.sql("delete from audit where id % 10 = 0").await;
    let last = app.store.last_audit_id().await.unwrap();
    for stretch in 1..=STRETCHES {
        audit::seal_up_to(&app, last * stretch / STRETCHES).await.unwrap();
    }
    app
}

/// A change somebody might make, and what kind it is.
fn edit(dice: &mut Dice, rows: &[i64], gaps: &[i64]) -> (&'static str, String) {
    let (row, other) = (dice.one_of(rows), dice.one_of(rows));
    let seal = 1 + dice.below(4) as i64;
    let text = dice.one_of(&["actor", "action", "subject", "cause", "request_id"]);
    let maybe = dice.one_of(&["before", "after"]);
    match dice.below(12) {
        0 => ("a text", format!("update audit set {text} = {text} || 'x' where id = {row}")),
        1 => ("a text", format!("update audit set {text} = '' where id = {row}")),
        2 => ("a time", format!("update audit set at_ms = at_ms + 1 where id = {row}")),
        3 => ("no time", format!("update audit set at_ms = 9000000000000000000 where id = {row}")),
        // Nothing becomes the empty text, and a text another.
        4 => (
            "before or after",
            format!("update audit set {maybe} = coalesce({maybe} || 'x', '') where id = {row}"),
        ),
        5 => ("removed", format!("delete from audit where id = {row}")),
        6 => {
            let gap = dice.one_of(gaps);
            ("moved", format!("update audit set id = {gap} where id = {row}"))
        }
        7 if row != other => (
            "swapped",
            format!(
                "update audit set id = -77 where id = {row};
                 update audit set id = {row} where id = {other};
                 update audit set id = {other} where id = -77"
            ),
        ),
        8 => {
            let id = dice.one_of(&[dice_gap(gaps, row), 0, -1, i64::MIN]);
            let columns = "at_ms, actor, action, subject, before, after, cause, request_id";
            (
                "inserted",
                format!(
                    "insert into audit (id, {columns})
                     select {id}, {columns} from audit where id = {row}"
                ),
            )
        }
        9 => {
            let column = dice.one_of(&["id", "last_id", "covered", "at_ms"]);
            let by = if column == "id" { 100 } else { 1 };
            (
                "a seal",
                format!("update audit_seals set {column} = {column} + {by} where id = {seal}"),
            )
        }
        10 => {
            let next = seal % STRETCHES + 1;
            (
                "a seal's mac",
                format!(
                    "update audit_seals set mac = (select s.mac from audit_seals s
                     where s.id = {next}) where id = {seal}"
                ),
            )
        }
        _ => ("a seal removed", format!("delete from audit_seals where id = {seal}")),
    }
}

fn dice_gap(gaps: &[i64], row: i64) -> i64 {
    gaps[usize::try_from(row).unwrap() % gaps.len()]
}

async fn every_edit_of_the_history_is_found(database: TestDatabase) {
    let app = sealed(&database).await;
    let editor = Editor::open(&database).await;
    editor.run("create table audit_kept as select * from audit").await;
    editor.run("create table seals_kept as select * from audit_seals").await;
    let untouched = audit::verify(&app, None).await.unwrap();
    assert_eq!((untouched.faults, untouched.seals, untouched.unsealed), (vec![], STRETCHES, 0));
    let head = untouched.head.unwrap();
    let kept = Some((head.id, head.mac.as_slice()));
    let all = app.store.audit_rows(0, i64::MAX, 1_000).await.unwrap();
    let rows: Vec<_> = all.iter().map(|row| row.id).collect();
    let gaps: Vec<_> = (1..head.last_id).filter(|id| !rows.contains(id)).collect();
    assert!(rows.len() > 150 && gaps.len() > 10);
    let edits = if matches!(database, TestDatabase::Sqlite(_)) { 1_000 } else { 100 };
    let mut dice = Dice::seeded(8);
    let mut kinds = HashMap::<_, usize>::new();
    for number in 0..edits {
        let (kind, statement) = edit(&mut dice, &rows, &gaps);
        editor.run(&statement).await;
        let verdict = audit::verify(&app, kept).await.unwrap();
        assert!(!verdict.faults.is_empty(), "edit {number}, {kind}, was not found: {statement}");
        *kinds.entry(kind).or_default() += 1;
        editor
            .run(
                "delete from audit; insert into audit select * from audit_kept;
                 delete from audit_seals; insert into audit_seals select * from seals_kept",
            )
            .await;
    }
    assert_eq!(kinds.len(), 11, "every kind was tried: {kinds:?}");
    let untouched = audit::verify(&app, kept).await.unwrap();
    assert_eq!(untouched.faults, [], "and what was put back is clean");
}

/// A connection that stays open, past the service.
enum Editor {
    Sqlite(std::sync::Mutex<rusqlite::Connection>),
    Postgres(tokio_postgres::Client),
}

impl Editor {
    async fn open(database: &TestDatabase) -> Self {
        match database {
            TestDatabase::Sqlite(_) => {
                let connection = rusqlite::Connection::open(database.path()).unwrap();
                // What it writes need not survive a power cut.
                connection.execute_batch("pragma synchronous = off").unwrap();
                Self::Sqlite(connection.into())
            }
            TestDatabase::Postgres { .. } => {
                let client = database.connection().await;
                // Whoever owns the tables can also take this away.
                let sql = "alter table audit alter column id set generated by default";
                client.batch_execute(sql).await.unwrap();
                Self::Postgres(client)
            }
        }
    }

    async fn run(&self, statements: &str) {
        let statements = format!("begin; {statements}; commit");
        match self {
            Self::Sqlite(db) => db.lock().unwrap().execute_batch(&statements).unwrap(),
            Self::Postgres(db) => db.batch_execute(&statements).await.unwrap(),
        }
    }
}

async fn a_history_cut_off_with_its_seals_is_found_by_the_seal_kept_elsewhere(
    database: TestDatabase,
) {
    let app = sealed(&database).await;
    let head = audit::verify(&app, None).await.unwrap().head.unwrap();
    let kept = Some((head.id, head.mac.as_slice()));
    assert_eq!(audit::verify(&app, kept).await.unwrap().faults, []);
    let before = app.store.seals_after(2, 1).await.unwrap().remove(0);
    let cut = format!(
        "delete from audit where id > {}; delete from audit_seals where id > {}",
        before.last_id, before.id
    );
    database.sql(&cut).await;
    assert_eq!(audit::verify(&app, None).await.unwrap().faults, [], "by itself it looks whole");
    assert_eq!(audit::verify(&app, kept).await.unwrap().faults, [Fault::Head]);
}

async fn rows_that_are_not_sealed_yet_are_counted(database: TestDatabase) {
    let app = sealed(&database).await;
    for _ in 0..3 {
        let at = app.clock.now();
        app.store.note(at, &Author::command_line(None), "test.note", "x", "").await.unwrap();
    }
    let verdict = audit::verify(&app, None).await.unwrap();
    assert_eq!((verdict.unsealed, verdict.faults), (3, vec![]));
    let last = app.store.last_audit_id().await.unwrap();
    audit::seal_up_to(&app, last).await.unwrap();
    let verdict = audit::verify(&app, None).await.unwrap();
    assert_eq!((verdict.unsealed, verdict.seals), (0, STRETCHES + 1));
    assert_eq!(verdict.faults, []);
}

/// On PostgreSQL a row is sealed half a minute later, by the same code.
#[tokio::test]
async fn nothing_is_sealed_over_a_history_whose_seals_are_gone() {
    let database = TestDatabase::sqlite();
    let app = sealed(&database).await;
    let mut sealer = audit::Sealer::default();
    sealer.tick(&app).await.unwrap();
    database.sql("update audit set actor = 'nobody' where id = 1").await;
    database.sql("delete from audit_seals").await;
    sealer.tick(&app).await.unwrap();
    let verdict = audit::verify(&app, None).await.unwrap();
    assert_eq!(verdict.seals, 0, "a forged history is not made good");
}

async fn two_nodes_that_seal_at_once_leave_one_chain(database: TestDatabase) {
    let app = sealed(&database).await;
    for _ in 0..30 {
        let at = app.clock.now();
        app.store.note(at, &Author::command_line(None), "test.note", "x", "").await.unwrap();
    }
    let last = app.store.last_audit_id().await.unwrap();
    let seal = |app: App| async move { audit::seal_up_to(&app, last).await.unwrap() };
    tokio::join!(seal(app.clone()), seal(app.clone()), seal(app.clone()));
    let verdict = audit::verify(&app, None).await.unwrap();
    assert_eq!((verdict.faults, verdict.unsealed), (vec![], 0));
}
