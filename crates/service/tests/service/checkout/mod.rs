//! The hosted checkout over HTTP: who may see, pay and cancel, and who may not.

mod foreign;
mod looks;
mod notices;
mod paying;
mod switching;

use hyper::Method;
use svc_service::config::Config;
use svc_service::domain::{Dossier, Order, ReferenceNumber};

use crate::support::{Answer, TestDatabase, TestService};

/// A service with one order of 15 000 Kz, and a payer who has its page.
struct Checkout {
    service: TestService,
    reference: String,
    key: String,
}

/// All that a request might have changed.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    dossier: Dossier,
    rows: Vec<i64>,
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

impl Checkout {
    async fn start(database: TestDatabase) -> Self {
        Self::start_with(database, |_| {}).await
    }

    /// Polls are not counted unless a test wants that.
    async fn start_with(database: TestDatabase, adjust: impl FnOnce(&mut Config)) -> Self {
        let service = TestService::start_with(database, |config| {
            config.limits.checkout_polls_per_second = 10_000;
            adjust(config);
        })
        .await;
        let reference = create(&service, "order_1").await;
        let key = service.partner.application.publishable_key.to_string();
        Self { service, reference, key }
    }

    /// Another order of the same shop; its reference number.
    async fn another_order(&self, id: &str) -> String {
        create(&self.service, id).await
    }

    fn at(&self, verb: &str, query: &str) -> String {
        format!("/checkout/{}{verb}?key={}{query}", self.reference, self.key)
    }

    async fn page(&self, query: &str) -> Answer {
        self.service.get(&self.at("", query)).await
    }

    /// The session that comes with a page.
    async fn session(&self) -> String {
        session_of(&self.page("").await)
    }

    async fn post(&self, verb: &str, headers: &[(&str, &str)], form: &str) -> Answer {
        let headers: Vec<_> = [FORM].into_iter().chain(headers.iter().copied()).collect();
        self.service.call(Method::POST, &self.at(verb, ""), &headers, form.to_owned()).await
    }

    /// Presses "pay" on the page.
    async fn pay(&self, session: &str, method: &str, more: &str) -> Answer {
        self.post("/pay", &[], &format!("session={session}&method={method}{more}")).await
    }

    async fn status(&self, session: &str) -> Answer {
        let headers = [("x-svc-session", session)];
        self.service.call(Method::GET, &self.at("/status", ""), &headers, "").await
    }

    async fn dossier(&self) -> Dossier {
        let reference = ReferenceNumber::parse(&self.reference).unwrap();
        self.service.app.store.dossier(&reference).await.unwrap().unwrap()
    }

    async fn order(&self) -> Order {
        self.dossier().await.order
    }

    async fn snapshot(&self) -> Snapshot {
        let mut rows = Vec::new();
        for table in ["orders", "payment_attempts", "outbox", "receipts", "exceptions", "audit"] {
            rows.push(self.service.count(table).await);
        }
        Snapshot { dossier: self.dossier().await, rows }
    }
}

async fn create(service: &TestService, id: &str) -> String {
    let token = service.token(&service.partner).await;
    let created = service.create(&token, &service.order(id)).await;
    created.json()["data"]["referenceNumber"].as_str().unwrap().to_owned()
}

fn session_of(page: &Answer) -> String {
    attribute(page, "data-session")
}

/// Whether it has a way to the page of the order, whatever was asked for.
fn leads_to_the_page(checkout: &Checkout, notice: &Answer) -> bool {
    let page = format!("href=\"/checkout/{}?key=", checkout.reference);
    notice.text.contains(&page)
}

/// The value of an attribute, as it stands in the page.
fn attribute(page: &Answer, name: &str) -> String {
    let from = page.text.split(&format!("{name}=\"")).nth(1);
    let value = from.unwrap_or_else(|| panic!("no {name} in {}", page.text));
    value.split('"').next().unwrap().to_owned()
}
