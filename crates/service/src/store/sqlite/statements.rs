//! Asking SQLite. A statement is prepared once and found again by where its text stands: the writer asks ten
//! for each order that is paid, and reading three hundred letters to find each costs as much as a step of it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;

use rusqlite::{Connection, OptionalExtension, Params, PrepFlags, Row, Statement};

use super::error;
use crate::store::Result;

/// A connection, and what was prepared on it.
pub(super) struct Db<'c> {
    connection: &'c Connection,
    kept: Option<RefCell<HashMap<Place, Statement<'c>>>>,
}

/// Of a text that stays where it is.
type Place = (usize, usize);

/// A statement's text. One that is part of the program is told from all others by its place.
pub(super) enum Sql<'a> {
    Fixed(&'static str),
    Composed(&'a str),
}

impl From<&'static str> for Sql<'_> {
    fn from(text: &'static str) -> Self {
        Self::Fixed(text)
    }
}

impl<'a> From<&'a String> for Sql<'a> {
    fn from(text: &'a String) -> Self {
        Self::Composed(text)
    }
}

impl<'c> Db<'c> {
    /// For whoever asks again and again.
    pub(super) fn keeping(connection: &'c Connection) -> Self {
        Self { connection, kept: Some(RefCell::default()) }
    }

    /// For a question or two: the connection itself remembers what was prepared, by the text.
    pub(super) fn of(connection: &'c Connection) -> Self {
        Self { connection, kept: None }
    }

    fn ask<T>(
        &self,
        sql: Sql<'_>,
        work: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let (text, kept) = match (sql, &self.kept) {
            (Sql::Fixed(text), Some(kept)) => (text, kept),
            (Sql::Fixed(text), None) | (Sql::Composed(text), _) => {
                return work(&mut *self.connection.prepare_cached(text)?);
            }
        };
        let place = (text.as_ptr().addr(), text.len());
        // Taken out: while this one is open another may be asked.
        let taken = kept.borrow_mut().remove(&place);
        let mut statement = match taken {
            Some(statement) => statement,
            None => {
                self.connection.prepare_with_flags(text, PrepFlags::SQLITE_PREPARE_PERSISTENT)?
            }
        };
        let result = work(&mut statement);
        kept.borrow_mut().insert(place, statement);
        result
    }
}

impl Deref for Db<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// Rows of a query, each turned into a value.
pub(super) fn rows<'a, T>(
    db: &Db<'_>,
    sql: impl Into<Sql<'a>>,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    db.ask(sql.into(), |statement| statement.query_map(parameters, read)?.collect())
        .map_err(|fault| error(&fault))
}

pub(super) fn row<'a, T>(
    db: &Db<'_>,
    sql: impl Into<Sql<'a>>,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>> {
    db.ask(sql.into(), |statement| statement.query_row(parameters, read).optional())
        .map_err(|fault| error(&fault))
}

pub(super) fn execute<'a>(
    db: &Db<'_>,
    sql: impl Into<Sql<'a>>,
    parameters: impl Params,
) -> Result<usize> {
    db.ask(sql.into(), |statement| statement.execute(parameters)).map_err(|fault| error(&fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_may_be_asked_while_it_is_open() {
        let connection = Connection::open_in_memory().unwrap();
        let db = Db::keeping(&connection);
        const TWICE: &str = "select ?1 * 2";
        for _ in 0..3 {
            let told = row(&db, TWICE, [1], |outer| {
                let inner = row(&db, TWICE, [10], |row| row.get::<_, i64>(0)).unwrap();
                Ok((outer.get::<_, i64>(0)?, inner))
            });
            assert_eq!(told.unwrap(), Some((2, Some(20))));
        }
    }

    #[test]
    fn another_text_in_the_same_place_is_another_statement() {
        let connection = Connection::open_in_memory().unwrap();
        let db = Db::keeping(&connection);
        let mut text = String::with_capacity(8);
        for number in 1..=3_i64 {
            text.clear();
            text.push_str(&format!("select {number}"));
            assert_eq!(row(&db, &text, [], |row| row.get(0)).unwrap(), Some(number));
        }
    }

    #[test]
    fn what_failed_can_be_asked_again() {
        let connection = Connection::open_in_memory().unwrap();
        let db = Db::keeping(&connection);
        execute(&db, "create table t (n integer primary key)", []).unwrap();
        const INSERT: &str = "insert into t (n) values (?1)";
        assert_eq!(execute(&db, INSERT, [1]).unwrap(), 1);
        execute(&db, INSERT, [1]).unwrap_err();
        assert_eq!(execute(&db, INSERT, [2]).unwrap(), 1);
    }
}
