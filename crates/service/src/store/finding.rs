//! What somebody looks for by an id at hand, and how far a newcomer has come.

use super::looking::Scope;
use super::portable::{Cells, Statement, values};
use super::records::read_reference;
use super::{Engine, Result, Store, postgres};
use crate::domain::{ApplicationId, BankReference, ReferenceNumber};

impl Store {
    /// Orders known by any id somebody may have at hand: of the merchant, of an event, of an attempt,
    /// of a bank reference, of a payment at one of these rails.
    pub async fn find_orders(
        &self,
        scope: &Scope,
        id: &str,
        rails: &[String],
    ) -> Result<Vec<ReferenceNumber>> {
        let mut statements = vec![
            Statement::new(
                "select reference_number, application_id from orders where reference_number = ?1",
                values![id.to_ascii_uppercase()],
            ),
            Statement::new(
                "select reference_number, application_id from outbox where id = ?1",
                values![id],
            ),
            Statement::new(
                "select reference_number, application_id from payment_attempts where id = ?1",
                values![id],
            ),
        ];
        for (entity, number) in slips(id) {
            let sql = "select p.reference_number, p.application_id from bank_references b
                       join payment_attempts p on p.id = b.attempt_id
                       where b.number = ?1 and (?2 = '' or b.entity = ?2)";
            statements.push(Statement::new(sql, values![number, entity]));
        }
        for rail in rails {
            let sql = "select o.reference_number, o.application_id from receipts r
                       join orders o on o.reference_number = r.reference_number
                       where r.rail = ?1 and r.rail_payment_id = ?2";
            statements.push(Statement::new(sql, values![rail.as_str(), id]));
        }
        let read = |cells: &mut Cells| Ok((cells.text()?, ApplicationId(cells.integer()?)));
        let mut found = match &self.engine {
            Engine::Sqlite(engine) => engine.orders_with_id(id)?,
            Engine::Postgres(_) => self.select(postgres::orders_with_id(id), read).await?,
        };
        for statement in statements {
            found.extend(self.select(statement, read).await?);
        }
        let mut references = Vec::new();
        for (reference, _) in found.into_iter().filter(|(_, whose)| scope.holds(*whose)) {
            if !references.iter().any(|known: &ReferenceNumber| known.as_str() == reference) {
                references.push(read_reference(&reference)?);
            }
        }
        Ok(references)
    }

    /// How far a newcomer has come: the first order, the first payer at the checkout, the first
    /// webhook that was taken.
    pub async fn first_steps(&self, application: ApplicationId) -> Result<[bool; 3]> {
        let sql = "select
            exists (select 1 from orders where application_id = ?1),
            exists (select 1 from (select reference_number from orders where application_id = ?1
                    order by reference_number desc limit 1000) newest
                    join checkout_visits v on v.reference_number = newest.reference_number),
            exists (select 1 from outbox where application_id = ?1 and state = 'delivered')";
        let read = |cells: &mut Cells| {
            Ok([cells.integer()? != 0, cells.integer()? != 0, cells.integer()? != 0])
        };
        let steps = self.select_one(Statement::new(sql, values![application.0]), read).await?;
        Ok(steps.unwrap_or_default())
    }
}

/// What a slip with these digits says, as entity and number: the number alone, or after its entity. People
/// write it in groups.
fn slips(text: &str) -> Vec<(String, String)> {
    let is_written = |c: char| c.is_ascii_digit() || c.is_whitespace() || "/-.".contains(c);
    if !text.chars().all(is_written) {
        return Vec::new();
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let with_entity = digits.split_at_checked(BankReference::ENTITY_DIGITS);
    let with_entity = with_entity.map(|(entity, number)| (entity.to_owned(), number.to_owned()));
    with_entity.into_iter().chain([(String::new(), digits)]).collect()
}
