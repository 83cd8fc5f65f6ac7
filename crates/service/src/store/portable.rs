//! Statements that both engines take as they are: for what people look at, and for changes of a row now and then.
//! The ways of orders and webhooks, where every microsecond counts, have statements of their own.

use super::{Engine, Result, Store, StoreError, engine, time};
use jiff::Timestamp;

use crate::domain::EventId;

/// What goes into a statement or comes out of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<EventId> for Value {
    fn from(id: EventId) -> Self {
        Self::Text(id.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::Integer(value.as_millisecond())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::portable::Value::from($value)),*] };
}
pub(super) use values;

/// A statement with parameters `?1`, `?2`, … and what they stand for.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub sql: String,
    pub values: Vec<Value>,
}

impl Statement {
    pub(super) fn new(sql: impl Into<String>, values: Vec<Value>) -> Self {
        Self { sql: sql.into(), values }
    }
}

/// A row, read column by column in the order of its statement.
#[derive(Debug)]
pub(super) struct Cells(std::vec::IntoIter<Value>);

impl Cells {
    pub(super) fn new(values: Vec<Value>) -> Self {
        Self(values.into_iter())
    }

    pub(super) fn read<T>(mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        read(&mut self)
    }

    fn next(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Null)
    }

    /// Whatever it is, to be given back.
    pub(super) fn any(&mut self) -> Value {
        self.next()
    }

    pub(super) fn integer(&mut self) -> Result<i64> {
        self.maybe_integer()?.ok_or_else(|| unexpected("nothing where a number should be"))
    }

    pub(super) fn maybe_integer(&mut self) -> Result<Option<i64>> {
        match self.next() {
            Value::Integer(value) => Ok(Some(value)),
            Value::Null => Ok(None),
            Value::Text(_) | Value::Bytes(_) => Err(unexpected("no number where one should be")),
        }
    }

    pub(super) fn text(&mut self) -> Result<String> {
        self.maybe_text()?.ok_or_else(|| unexpected("nothing where a text should be"))
    }

    pub(super) fn maybe_text(&mut self) -> Result<Option<String>> {
        match self.next() {
            Value::Text(value) => Ok(Some(value)),
            Value::Null => Ok(None),
            Value::Integer(_) | Value::Bytes(_) => Err(unexpected("no text where one should be")),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>> {
        self.maybe_bytes()?.ok_or_else(|| unexpected("nothing where bytes should be"))
    }

    pub(super) fn maybe_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        match self.next() {
            Value::Bytes(value) => Ok(Some(value)),
            Value::Null => Ok(None),
            Value::Integer(_) | Value::Text(_) => Err(unexpected("no bytes where they should be")),
        }
    }

    pub(super) fn time(&mut self) -> Result<Timestamp> {
        time(self.integer()?)
    }

    pub(super) fn maybe_time(&mut self) -> Result<Option<Timestamp>> {
        self.maybe_integer()?.map(time).transpose()
    }
}

pub(super) fn each<T>(rows: Vec<Cells>, read: impl Fn(&mut Cells) -> Result<T>) -> Result<Vec<T>> {
    rows.into_iter().map(|mut cells| read(&mut cells)).collect()
}

fn unexpected(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}

impl Store {
    pub(super) async fn select<T>(
        &self,
        statement: Statement,
        read: impl Fn(&mut Cells) -> Result<T>,
    ) -> Result<Vec<T>> {
        each(engine!(self.select(statement))?, read)
    }

    pub(super) async fn select_one<T>(
        &self,
        statement: Statement,
        read: impl Fn(&mut Cells) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.select(statement, read).await?.into_iter().next())
    }

    /// One row by its key, for the service itself: on SQLite on the caller's thread.
    pub(super) async fn look_up<T>(
        &self,
        statement: Statement,
        read: impl FnOnce(&mut Cells) -> Result<T>,
    ) -> Result<Option<T>> {
        let found = engine!(self.look_up(statement))?;
        found.into_iter().next().map(|cells| cells.read(read)).transpose()
    }

    /// For the service itself, which does not wait behind those who look at pages. One after the other, each
    /// answered as of its own moment.
    pub(super) async fn read<const COUNT: usize>(
        &self,
        statements: [Statement; COUNT],
    ) -> Result<[Vec<Cells>; COUNT]> {
        let found = engine!(self.read(statements.into()))?;
        Ok(found.try_into().expect("an answer for each"))
    }

    /// Whether it changed a row.
    pub(super) async fn transact_one(
        &self,
        sql: impl Into<String>,
        values: Vec<Value>,
    ) -> Result<bool> {
        self.transact(vec![Statement::new(sql, values)]).await
    }

    /// All of them in one transaction, or none if the first changes no row; whether it did.
    pub(super) async fn transact(&self, statements: Vec<Statement>) -> Result<bool> {
        engine!(self.transact(statements))
    }
}
