//! What happened by the hour, counted now and then, so that no page has to read millions of rows.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::looking::Scope;
use super::portable::{Cells, Statement, Value, values};
use super::{Result, Store, time};
use crate::domain::{ApplicationId, EventId, ReferenceNumber, after};

/// One hour of one application, or of all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub orders: i64,
    pub amount: i64,
    pub confirmed: i64,
    pub confirmed_amount: i64,
    pub cancelled: i64,
    pub attempts: i64,
    pub failures: i64,
    /// Events tried at least once, and how long they waited for that.
    pub tried: i64,
    pub lag_ms_sum: i64,
    pub lag_ms_max: i64,
}

impl Figures {
    pub fn add(&mut self, other: &Self) {
        self.orders += other.orders;
        self.amount += other.amount;
        self.confirmed += other.confirmed;
        self.confirmed_amount += other.confirmed_amount;
        self.cancelled += other.cancelled;
        self.attempts += other.attempts;
        self.failures += other.failures;
        self.tried += other.tried;
        self.lag_ms_sum += other.lag_ms_sum;
        self.lag_ms_max = self.lag_ms_max.max(other.lag_ms_max);
    }

    fn read(cells: &mut Cells) -> Result<Self> {
        Ok(Self {
            orders: cells.integer()?,
            amount: cells.integer()?,
            confirmed: cells.integer()?,
            confirmed_amount: cells.integer()?,
            cancelled: cells.integer()?,
            attempts: cells.integer()?,
            failures: cells.integer()?,
            tried: cells.integer()?,
            lag_ms_sum: cells.integer()?,
            lag_ms_max: cells.integer()?,
        })
    }
}

/// Under this number an hour of all applications is kept.
const TOGETHER: i64 = 0;
const PARTS_OF_AN_HOUR: i32 = 30;
const PART: SignedDuration = SignedDuration::from_mins(2);
const COUNTED_TO: &str = "figures_counted_to_ms";

impl Store {
    /// The hours since then, by their beginning.
    pub async fn figures(&self, scope: &Scope, since: Timestamp) -> Result<BTreeMap<i64, Figures>> {
        let applications = match scope {
            Scope::Everything => vec![TOGETHER],
            Scope::Applications(own) => own.iter().map(|application| application.0).collect(),
        };
        let mut hours = BTreeMap::<i64, Figures>::new();
        for application in applications {
            let sql =
                "select hour_ms, orders, amount, confirmed, confirmed_amount, cancelled, attempts,
                           failures, tried, lag_ms_sum, lag_ms_max
                       from hour_figures where application_id = ?1 and hour_ms >= ?2";
            let read = |cells: &mut Cells| Ok((cells.integer()?, Figures::read(cells)?));
            let found = self.select(Statement::new(sql, values![application, since]), read).await?;
            for (hour, figures) in found {
                hours.entry(hour).or_default().add(&figures);
            }
        }
        Ok(hours)
    }

    /// Hours before this moment are counted for good.
    pub async fn figures_counted_to(&self) -> Result<Option<Timestamp>> {
        let stored = self.setting(COUNTED_TO).await?;
        stored.map(|text| time(text.parse().unwrap_or_default())).transpose()
    }

    pub async fn set_figures_counted_to(&self, at: Timestamp) -> Result<()> {
        self.put_setting(COUNTED_TO, &at.as_millisecond().to_string()).await
    }

    /// The first moment since then in which an order or an event appeared.
    pub async fn first_news_since(&self, at: Timestamp) -> Result<Option<Timestamp>> {
        let sql = "select min(created_at_ms) from (
                       select created_at_ms from (select created_at_ms from orders
                           where reference_number >= ?1 order by reference_number limit 1) as first_order
                       union all
                       select created_at_ms from (select created_at_ms from outbox
                           where id >= ?2 order by id limit 1) as first_event
                   ) as news";
        let values = values![ReferenceNumber::lowest_at(at), EventId::lowest_at(at)];
        Ok(self.select_one(Statement::new(sql, values), Cells::maybe_time).await?.flatten())
    }

    /// Counts an hour, as far as it has gone, anew if it was counted before.
    pub async fn count_hour(&self, hour: Timestamp, now: Timestamp) -> Result<()> {
        let mut counted = BTreeMap::<i64, Figures>::new();
        for part in 0..PARTS_OF_AN_HOUR {
            let begin = after(hour, PART * part);
            if begin <= now {
                self.count_part(&mut counted, begin).await?;
            }
        }
        let mut together = Figures::default();
        counted.values().for_each(|figures| together.add(figures));
        counted.insert(TOGETHER, together);
        let upserts =
            counted.iter().map(|(application, figures)| upsert(hour, *application, figures));
        self.transact(upserts.collect()).await.map(drop)
    }

    /// A busy hour at once would be more than a question may read.
    async fn count_part(
        &self,
        counted: &mut BTreeMap<i64, Figures>,
        begin: Timestamp,
    ) -> Result<()> {
        let end = after(begin, PART);
        let orders = values![ReferenceNumber::lowest_at(begin), ReferenceNumber::lowest_at(end)];
        let events = values![EventId::lowest_at(begin), EventId::lowest_at(end)];
        self.count(counted, CREATED, &orders, |figures, cells| {
            (figures.orders, figures.amount) = (cells.integer()?, cells.integer()?);
            Ok(())
        })
        .await?;
        self.count(counted, SETTLED, &events, |figures, cells| {
            (figures.confirmed, figures.confirmed_amount) = (cells.integer()?, cells.integer()?);
            figures.cancelled = cells.integer()?;
            Ok(())
        })
        .await?;
        self.count(counted, TRIED, &events, |figures, cells| {
            (figures.attempts, figures.failures) = (cells.integer()?, cells.integer()?);
            figures.tried = cells.integer()?;
            (figures.lag_ms_sum, figures.lag_ms_max) = (cells.integer()?, cells.integer()?);
            Ok(())
        })
        .await
    }

    async fn count(
        &self,
        counted: &mut BTreeMap<i64, Figures>,
        sql: &str,
        range: &[Value],
        take: impl Fn(&mut Figures, &mut Cells) -> Result<()>,
    ) -> Result<()> {
        let read = |cells: &mut Cells| {
            let application = ApplicationId(cells.integer()?);
            let mut figures = Figures::default();
            take(&mut figures, cells)?;
            Ok((application, figures))
        };
        for (application, figures) in self.select(Statement::new(sql, range.to_vec()), read).await?
        {
            counted.entry(application.0).or_default().add(&figures);
        }
        Ok(())
    }
}

const CREATED: &str = "select application_id, count(*), cast(sum(amount) as bigint) from orders
    where reference_number >= ?1 and reference_number < ?2 group by application_id";

const SETTLED: &str = "select e.application_id,
        cast(sum(case when e.status = 'CON' then 1 else 0 end) as bigint),
        cast(sum(case when e.status = 'CON' then o.amount else 0 end) as bigint),
        cast(sum(case when e.status = 'CAN' then 1 else 0 end) as bigint)
    from outbox e join orders o on o.reference_number = e.reference_number
    where e.id >= ?1 and e.id < ?2 and e.status <> 'PEN' group by e.application_id";

const TRIED: &str = "select e.application_id, count(*),
        cast(sum(case when a.http_status >= 200 and a.http_status < 300 then 0 else 1 end) as bigint),
        cast(sum(case when a.attempt = 1 then 1 else 0 end) as bigint),
        cast(sum(case when a.attempt = 1 then a.at_ms - e.created_at_ms else 0 end) as bigint),
        max(case when a.attempt = 1 then a.at_ms - e.created_at_ms else 0 end)
    from outbox e join delivery_attempts a on a.event_id = e.id
    where e.id >= ?1 and e.id < ?2 group by e.application_id";

fn upsert(hour: Timestamp, application: i64, figures: &Figures) -> Statement {
    let sql = "insert into hour_figures (hour_ms, application_id, orders, amount, confirmed,
                   confirmed_amount, cancelled, attempts, failures, tried, lag_ms_sum, lag_ms_max)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
               on conflict (hour_ms, application_id) do update set orders = excluded.orders,
                   amount = excluded.amount, confirmed = excluded.confirmed,
                   confirmed_amount = excluded.confirmed_amount, cancelled = excluded.cancelled,
                   attempts = excluded.attempts, failures = excluded.failures,
                   tried = excluded.tried, lag_ms_sum = excluded.lag_ms_sum,
                   lag_ms_max = excluded.lag_ms_max";
    let Figures { orders, amount, confirmed, confirmed_amount, cancelled, .. } = *figures;
    let Figures { attempts, failures, tried, lag_ms_sum, lag_ms_max, .. } = *figures;
    Statement::new(
        sql,
        values![
            hour,
            application,
            orders,
            amount,
            confirmed,
            confirmed_amount,
            cancelled,
            attempts,
            failures,
            tried,
            lag_ms_sum,
            lag_ms_max
        ],
    )
}
