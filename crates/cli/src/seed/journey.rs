//! A month in moments: the real engine, with a clock that is led from one thing to the next.

use std::sync::Arc;

use anyhow::{Context, bail};
use jiff::Timestamp;
use svc_service::app::App;
use svc_service::domain::{
    Actor, AdditionalInfo, Author, CancelReason, Centimos, ExternalTransactionId, Kwanza, Label,
    Notice, PayerId, PaymentAttempt, PhoneNumber, Quantity, Reason, ReferenceNumber, Status, Terms,
    Word, after,
};
use svc_service::orders::{self, Choice, OrderRequest, PayError, Resolution};
use svc_service::rails::payment_id;
use svc_service::store::{Application, ExceptionFilter};
use svc_service::webhook::Dispatcher;

use super::stories::{Act, Story};

const OPERATOR: &str = "ana.domingos";

pub(super) struct Journey {
    pub app: App,
    pub dispatcher: Dispatcher,
    /// One for each shop, with the address of its webhooks.
    pub shops: Vec<(Arc<Application>, String)>,
    pub orders: Vec<Option<ReferenceNumber>>,
    /// When an event is next due, as far as the clock knows.
    pub next_webhook: Option<Timestamp>,
}

impl Journey {
    /// Tells all stories, in the order of what happens, and arrives at `end`.
    pub(super) async fn travel(
        &mut self,
        stories: &[Story],
        begin: Timestamp,
        end: Timestamp,
    ) -> anyhow::Result<()> {
        for (at, index, act) in moments(stories, begin, end) {
            self.wait_until(at).await?;
            let story = &stories[index];
            match act {
                None => self.create(index, story).await?,
                Some(act) => self.act(index, story, act).await?,
            }
            self.deliver().await?;
        }
        self.wait_until(end).await
    }

    /// Whatever the clock brings on the way happens at its own moment.
    async fn wait_until(&mut self, target: Timestamp) -> anyhow::Result<()> {
        let mut stuck = None;
        loop {
            let due = orders::next_due(&self.app).await?;
            let next = due.into_iter().chain(self.next_webhook).min();
            let Some(next) = next.filter(|next| *next <= target && stuck != Some(*next)) else {
                break;
            };
            stuck = (next <= self.app.clock.now()).then_some(next);
            self.advance_to(next);
            orders::run_due(&self.app).await?;
            self.deliver().await?;
        }
        self.advance_to(target);
        Ok(())
    }

    fn advance_to(&self, to: Timestamp) {
        self.app.clock.advance(to.duration_since(self.app.clock.now()));
    }

    async fn deliver(&mut self) -> anyhow::Result<()> {
        self.dispatcher.drain().await?;
        self.next_webhook = self.dispatcher.next_due().await?;
        Ok(())
    }

    pub(super) async fn create(&mut self, index: usize, story: &Story) -> anyhow::Result<()> {
        let (application, webhook_url) = &self.shops[story.shop];
        let (base, _) = webhook_url.split_once("/api/").context("the address is ours")?;
        let info = serde_json::json!({
            "returnUrl": format!("{base}/success"),
            "cancelUrl": format!("{base}/cancelled"),
            "webhookUrl": webhook_url,
        });
        let request = OrderRequest {
            application: Arc::clone(application),
            external_transaction_id: ExternalTransactionId::parse(&*story.external_transaction_id)?,
            terms: Terms {
                payer_id: PayerId::parse(&*story.payer)?,
                name: Label::parse(story.name)?,
                amount: Kwanza::parse(story.amount)?,
                quantity: Quantity::parse(story.quantity)?,
                additional_info: AdditionalInfo::parse(&info.to_string(), &self.app.url_rules)?,
            },
            request_id: "seed".into(),
        };
        let created = orders::create(&self.app, request).await?;
        self.orders[index] = Some(created.order.reference_number);
        Ok(())
    }

    async fn act(&self, index: usize, story: &Story, act: &Act) -> anyhow::Result<()> {
        let reference = self.orders[index].as_ref().context("an order is made first")?;
        let payer = Author { actor: Actor::Payer, request_id: "seed".into() };
        match act {
            Act::Push { phone } => {
                let phone = PhoneNumber::parse(phone).context("a number of ours")?;
                self.pay(reference, &Choice::Push(phone), &payer).await
            }
            Act::Reference { life } => {
                self.pay(reference, &Choice::Reference { life: *life }, &payer).await
            }
            Act::Code => self.pay(reference, &Choice::Code, &payer).await,
            Act::Money { off } => {
                let amount = Kwanza::parse(story.amount + off)?;
                self.hear(reference, "", Word::Paid(Centimos::from(amount))).await
            }
            Act::MoneyAgain => {
                let amount = Kwanza::parse(story.amount)?;
                self.hear(reference, "-2", Word::Paid(Centimos::from(amount))).await
            }
            Act::PayerRefuses => {
                self.hear(reference, "", Word::Refused(Reason::PayerRefused)).await
            }
            Act::PayerCancels => {
                orders::cancel(&self.app, reference, CancelReason::Payer, &payer).await?;
                Ok(())
            }
            Act::OperatorCancels => {
                let request = operator();
                orders::cancel(&self.app, reference, CancelReason::Operator, &request).await?;
                Ok(())
            }
            Act::OperatorResolves(resolution) => self.resolve(reference, *resolution).await,
        }
    }

    async fn pay(
        &self,
        reference: &ReferenceNumber,
        choice: &Choice,
        payer: &Author,
    ) -> anyhow::Result<()> {
        match orders::pay(&self.app, reference, choice, payer).await {
            // Somebody was quicker: the story goes on as it can.
            Ok(_) | Err(PayError::Refused(_)) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The rail says something about the last attempt.
    async fn hear(
        &self,
        reference: &ReferenceNumber,
        suffix: &str,
        word: Word,
    ) -> anyhow::Result<()> {
        let Some(attempt) = self.last_attempt(reference).await? else { return Ok(()) };
        let id = format!("{}{suffix}", payment_id(&attempt.id));
        let notice = Notice::of(&attempt, id, word, "seed");
        orders::settle(&self.app, notice, "seed").await?;
        Ok(())
    }

    async fn last_attempt(
        &self,
        order: &ReferenceNumber,
    ) -> anyhow::Result<Option<PaymentAttempt>> {
        let dossier = self.app.store.dossier(order).await?;
        Ok(dossier.and_then(|mut dossier| dossier.attempts.pop()))
    }

    async fn resolve(&self, order: &ReferenceNumber, how: Resolution) -> anyhow::Result<()> {
        let filter =
            ExceptionFilter { reference_number: Some(order.clone()), ..ExceptionFilter::default() };
        let why = match how {
            Resolution::Accept => "o cliente confirmou por telefone",
            Resolution::Refund => "devolvido por transferência",
            Resolution::Dismiss => "sem efeito",
        };
        for exception in self.app.store.exceptions(filter, 1).await? {
            orders::resolve(&self.app, exception.id, how, &operator(), why).await?;
        }
        Ok(())
    }

    /// How many orders ended as what.
    pub(super) async fn count(&self) -> anyhow::Result<[usize; 3]> {
        let mut counts = [0; 3];
        for reference in self.orders.iter().flatten() {
            let Some(order) = self.app.store.order_by_reference(reference).await? else {
                bail!("the order {} is gone", reference.as_str());
            };
            counts[match order.status {
                Status::Pending => 0,
                Status::Confirmed => 1,
                Status::Cancelled => 2,
            }] += 1;
        }
        Ok(counts)
    }
}

/// Everything that is done from outside, by time; what would be in the future is left out.
fn moments(
    stories: &[Story],
    begin: Timestamp,
    end: Timestamp,
) -> Vec<(Timestamp, usize, Option<&Act>)> {
    let mut all = Vec::new();
    for (index, story) in stories.iter().enumerate() {
        let begins = after(begin, story.begins);
        all.push((begins, index, None));
        all.extend(story.acts.iter().map(|(by, act)| (after(begins, *by), index, Some(act))));
    }
    all.retain(|(at, _, _)| *at < end);
    // Stable: an order is made before anything happens to it.
    all.sort_by_key(|(at, _, _)| *at);
    all
}

fn operator() -> Author {
    Author { actor: Actor::Operator(OPERATOR.into()), request_id: "seed".into() }
}
