//! The check itself: every case once, in an order that uses as few orders as possible.

use std::time::Duration;

use anyhow::bail;
use secrecy::ExposeSecret;

use super::case::{Case, State};
use super::delivery::{Event, Sender, Signature, foreign_secret, stranger};
use super::diagnose;
use super::finding::{Finding, find};
use super::judge::{Effect, Fault, Graded, Row, Seen};
use super::orders::{Order, Orders};
use crate::forms::Notation;
use crate::http::{Exchange, Silence};
use crate::reencode::{Style, reencode};

const PARALLEL: usize = 20;

struct Script {
    sender: Sender,
    orders: Orders,
    rows: Vec<Row>,
    found: Vec<Finding>,
    /// Which case touched an order last, and what state it should be in ever after.
    watched: Vec<(Case, Order, State)>,
    /// The slowest answer to a genuine event, or that there was none.
    slowest: Option<Seen>,
}

pub(super) async fn run(sender: Sender, orders: Orders) -> anyhow::Result<Graded> {
    let effect_seen = orders.are_watched();
    let mut script = Script {
        sender,
        orders,
        rows: Vec::new(),
        found: Vec::new(),
        watched: Vec::new(),
        slowest: None,
    };
    if script.first().await? {
        script.genuine().await?;
    }
    script.forged().await?;
    script.look_again().await?;
    Ok(script.graded(effect_seen))
}

impl Script {
    /// A genuine event. If it is refused, no other can be judged, and it is found out why.
    async fn first(&mut self) -> anyhow::Result<bool> {
        let Some(order) = self.orders.fresh().await? else {
            bail!("there is no order to check with")
        };
        let event = Event::payment(&order, "CON");
        let told = self.sender.send(&event, Signature::Right).await;
        if let Err(Silence::Unreachable(why)) = &told.answer {
            bail!("the handler cannot be reached: {why}; start it, or mend the address");
        }
        let answer = told.answer.clone();
        self.judge(Case::Valid, &order, State::Pending, State::Confirmed, told).await?;
        match answer {
            Ok(answer) if !(200..300).contains(&answer.status) => {
                self.found.push(diagnose::refusal(&self.sender, &event, &answer).await);
                Ok(false)
            }
            _ if self.last().failed() => Ok(true),
            _ => self.after_the_end(order, event).await.map(|()| true),
        }
    }

    /// An order that is paid stays so (spec 3).
    async fn after_the_end(&mut self, order: Order, event: Event) -> anyhow::Result<()> {
        let told = self.sender.send(&event, Signature::Right).await;
        let mut state = self.unchanged(Case::Duplicate, &order, State::Confirmed, told).await?;
        for (case, status) in [(Case::CancelAfterPaid, "CAN"), (Case::PendingAfterPaid, "PEN")] {
            let told = self.send(&Event::payment(&order, status)).await;
            state = self.unchanged(case, &order, state, told).await?;
        }
        Ok(())
    }

    async fn genuine(&mut self) -> anyhow::Result<()> {
        if let Some(order) = self.orders.fresh().await? {
            let told = self.send(&Event::payment(&order, "CAN")).await;
            let ended = State::Cancelled;
            self.judge(Case::Cancelled, &order, State::Pending, ended, told).await?;
            if self.last().passed() {
                let told = self.send(&Event::payment(&order, "CON")).await;
                self.unchanged(Case::PaidAfterCancelled, &order, ended, told).await?;
            }
        }
        if let Some(order) = self.orders.fresh().await? {
            let told = self.in_parallel(&Event::payment(&order, "CON")).await;
            self.judge(Case::Parallel, &order, State::Pending, State::Confirmed, told).await?;
        }
        if let Some(order) = self.orders.fresh().await? {
            let event = Event::oddly_formatted(&order);
            let told = self.send(&event).await;
            self.judge(Case::OddFormat, &order, State::Pending, State::Confirmed, told).await?;
            if !self.last().was_taken() {
                self.found.extend(diagnose::mistake(&self.sender, &event).await);
            }
        }
        if let Some(order) = self.orders.fresh().await? {
            self.other_amount(&order).await?;
        }
        self.strange().await
    }

    /// Genuine, but not what was agreed: it is stored, and the goods wait for a person.
    async fn other_amount(&mut self, order: &Order) -> anyhow::Result<()> {
        let other = Order { amount: order.amount + 1, ..order.clone() };
        let told = self.send(&Event::payment(&other, "CON")).await;
        let standing = self.orders.settled(&order.id, State::Confirmed).await?;
        let effect = standing
            .map_or(Effect::NotSeen, |is| Effect::Held { after: is.state, count: is.count });
        self.rows.push(Row::judged(Case::OtherAmount, seen(&told, effect)));
        Ok(())
    }

    /// Genuine, but nothing is to be done.
    async fn strange(&mut self) -> anyhow::Result<()> {
        let nobody = stranger(15_000);
        let before = self.orders.is_known(&nobody.id).await;
        let told = self.send(&Event::payment(&nobody, "CON")).await;
        let after = self.orders.is_known(&nobody.id).await;
        let effect = match (before, after) {
            (Some(false), Some(known)) => Effect::StillUnknown(!known),
            _ => Effect::NotSeen,
        };
        self.rows.push(Row::judged(Case::UnknownOrder, seen(&told, effect)));
        for (case, event, status) in [
            (Case::PendingFirst, "payment", "PEN"),
            (Case::UnknownEvent, "refund", "CON"),
            (Case::UnknownStatus, "payment", "REF"),
        ] {
            let Some(order) = self.orders.pending().await? else { continue };
            let told = self.send(&Event::of(event, &order, status)).await;
            self.pending_still(case, &order, told).await?;
        }
        let cut = Event::with_body(br#"{"event":"payment","data":{"#.to_vec());
        let told = self.sender.send(&cut, Signature::Right).await;
        self.rows.push(Row::judged(Case::SignedNonsense, seen(&told, Effect::NotSeen)));
        Ok(())
    }

    /// Not ours: 401, and nothing changes (spec 5.3).
    async fn forged(&mut self) -> anyhow::Result<()> {
        for case in Case::ALL.into_iter().filter(|case| !case.is_genuine()) {
            let Some(order) = self.orders.pending().await? else { continue };
            let (event, signature) = self.forge(case, &order);
            let told = self.sender.send(&event, signature).await;
            self.pending_still(case, &order, told).await?;
        }
        Ok(())
    }

    fn forge(&self, case: Case, order: &Order) -> (Event, Signature) {
        let mut event = Event::payment(order, "CON");
        let right = self.sender.sign(&event.body);
        let digest = hex::decode(&right).expect("we wrote it in hex");
        let half_wrong = || {
            let other = if right.ends_with('0') { "1" } else { "0" };
            format!("{}{}", &right[..32], other.repeat(32))
        };
        let signature = match case {
            Case::MissingSignature => return (event, Signature::Missing),
            Case::EmptySignature => String::new(),
            Case::ShortSignature => right[..63].to_owned(),
            Case::LongSignature => format!("{right}0"),
            // Not even ASCII, which some comparisons do not survive.
            Case::NotHex => "é".repeat(64),
            Case::HalfRight => half_wrong(),
            Case::Capitals => Notation::UpperCase.write(&digest),
            Case::Prefixed => Notation::Prefixed.write(&digest),
            Case::Base64 => Notation::Base64.write(&digest),
            Case::OtherSecret => {
                svc_service::domain::sign(foreign_secret().expose_secret(), &event.body)
            }
            Case::UnsignedNonsense => {
                event.body = b"{not json".to_vec();
                "0".repeat(64)
            }
            Case::ChangedBody => {
                let dearer = Order { amount: order.amount + 1, ..order.clone() };
                event.body = Event::payment(&dearer, "CON").body;
                right
            }
            Case::ReencodedBody => {
                event.body = reencode(&event.body, Style::Spaced).expect("we wrote it as JSON");
                right
            }
            _ => {
                event.body.push(b'\n');
                right
            }
        };
        (event, Signature::Text(signature))
    }

    async fn send(&self, event: &Event) -> Exchange {
        self.sender.send(event, Signature::Right).await
    }

    /// Twenty at once; the worst of their answers.
    async fn in_parallel(&self, event: &Event) -> Exchange {
        let mut sending = tokio::task::JoinSet::new();
        for _ in 0..PARALLEL {
            let (sender, event) = (self.sender.clone(), event.clone());
            sending.spawn(async move { sender.send(&event, Signature::Right).await });
        }
        let told = sending.join_all().await;
        let took = told.iter().map(|one| one.took).max().unwrap_or_default();
        let rank = |one: &Exchange| match &one.answer {
            Ok(answer) => answer.status,
            Err(_) => u16::MAX,
        };
        let worst = told.into_iter().max_by_key(rank).expect("there are twenty");
        Exchange { took, ..worst }
    }

    async fn unchanged(
        &mut self,
        case: Case,
        order: &Order,
        state: State,
        told: Exchange,
    ) -> anyhow::Result<State> {
        self.judge(case, order, state, state, told).await
    }

    async fn pending_still(
        &mut self,
        case: Case,
        order: &Order,
        told: Exchange,
    ) -> anyhow::Result<()> {
        let is = self.unchanged(case, order, State::Pending, told).await?;
        if is != State::Pending {
            self.orders.spoilt();
        }
        Ok(())
    }

    /// The state the order is in afterwards; as wanted, where nobody can tell.
    async fn judge(
        &mut self,
        case: Case,
        order: &Order,
        before: State,
        wanted: State,
        told: Exchange,
    ) -> anyhow::Result<State> {
        // Only a change that is wanted is waited for.
        let standing = match before == wanted {
            true => self.orders.standing(&order.id).await?,
            false => self.orders.settled(&order.id, wanted).await?,
        };
        let effect = match standing {
            None => Effect::NotSeen,
            Some(is) => Effect::State { before, wanted, after: is.state, count: is.count },
        };
        let seen = seen(&told, effect);
        if case.is_genuine() && self.slowest.as_ref().is_none_or(|slow| slow.took < seen.took) {
            self.slowest = Some(seen.clone());
        }
        let is = if let Effect::State { after, .. } = effect { after } else { wanted };
        self.watched.retain(|(_, known, _)| known.id != order.id);
        self.watched.push((case, order.clone(), is));
        self.rows.push(Row::judged(case, seen));
        Ok(is)
    }

    /// A handler that works in the background may have done it only now.
    async fn look_again(&mut self) -> anyhow::Result<()> {
        for (case, order, state) in std::mem::take(&mut self.watched) {
            let Some(now) = self.orders.standing(&order.id).await? else { continue };
            let Some(row) = self.rows.iter_mut().find(|row| row.case == case) else { continue };
            if now.state != state && !row.acted() {
                row.faults.push(Fault::Effect { is: now.state, wanted: state });
            }
            let counted = row.faults.iter().any(|fault| matches!(fault, Fault::Counted(_)));
            if let Some(count @ 2..) = now.count.filter(|_| !counted) {
                row.faults.push(Fault::Counted(count));
            }
        }
        Ok(())
    }

    fn last(&self) -> &Row {
        self.rows.last().expect("a case was tried")
    }

    fn graded(mut self, effect_seen: bool) -> Graded {
        if let Some(slowest) = self.slowest.filter(|_| self.rows.len() > 1) {
            // How it was answered is judged by the cases themselves.
            let answer = slowest.answer.map(|_| 200);
            let seen = Seen { answer, effect: Effect::NotSeen, took: slowest.took };
            self.rows.push(Row::judged(Case::InTime, seen));
        }
        let counted = |row: &Row| {
            let seen = row.seen.as_ref();
            seen.is_some_and(|s| matches!(s.effect, Effect::State { count: Some(_), .. }))
        };
        let count_seen = self.rows.iter().any(counted);
        let findings = find(&self.rows, self.found);
        let mut rows = self.rows;
        for case in Case::ALL {
            if !rows.iter().any(|row| row.case == case) {
                rows.push(Row::not_tried(case));
            }
        }
        rows.sort_by_key(|row| row.case);
        Graded { rows, findings, effect_seen, count_seen }
    }
}

fn seen(told: &Exchange, effect: Effect) -> Seen {
    let answer = told.answer.as_ref().map(|answer| answer.status).map_err(Clone::clone);
    Seen { answer, took: Duration::from_micros(told.took.as_micros() as u64), effect }
}
