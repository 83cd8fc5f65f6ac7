//! Two merchants with orders in every state, and people who look at them with a browser.

use hyper::Method;
use secrecy::ExposeSecret;
use svc_service::app::App;
use svc_service::console;
use svc_service::credentials::Issued;
use svc_service::domain::*;
use svc_service::orders;
use svc_service::store::{EventFilter, ExceptionFilter};

use crate::support::{
    Answer, Receiver, TestDatabase, TestService, application, patiently, payment_of,
};

/// The merchant "Loja" has an order that was paid, one that is open and one whose money does not fit;
/// the merchant "Outra" has an open order.
pub(super) struct World {
    pub(super) service: TestService,
    pub(super) receiver: Receiver,
    pub(super) paid: Order,
    pub(super) open: Order,
    pub(super) held: Order,
    /// Of the call that made `open`.
    pub(super) request_id: String,
}

/// Somebody who is signed in.
pub(super) struct Visitor {
    pub(super) id: i64,
    pub(super) login: String,
    /// As their browser sends it.
    pub(super) cookie: String,
}

pub(super) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

impl World {
    pub(super) async fn start(database: TestDatabase) -> Self {
        Self::around(TestService::start(database).await).await
    }

    /// At a time that stands still: codes of phones stay what they are.
    pub(super) async fn start_standing(database: TestDatabase) -> Self {
        Self::around(TestService::start_standing(database).await).await
    }

    async fn around(service: TestService) -> Self {
        let receiver = Receiver::answering(200).await;
        service.app.directory.refresh(&service.app.store).await.unwrap();
        let (_, paid) = create(&service, &service.partner, "loja-paid", &receiver.url()).await;
        let (request_id, open) =
            create(&service, &service.partner, "loja-open", &receiver.url()).await;
        let (_, held) = create(&service, &service.partner, "loja-held", &receiver.url()).await;
        create(&service, &service.stranger, "outra-open", &receiver.url()).await;
        orders::settle(&service.app, payment_of(&paid), "req-pay").await.unwrap();
        let short = Notice { word: Word::Paid(Centimos::new(100)), ..payment_of(&held) };
        orders::settle(&service.app, short, "req-short").await.unwrap();
        let world = Self { service, receiver, paid, open, held, request_id };
        world.until_delivered().await;
        world
    }

    pub(super) fn app(&self) -> &App {
        &self.service.app
    }

    /// The event of the paid order; delivered events stay as they are.
    pub(super) async fn event(&self) -> String {
        let filter = EventFilter {
            reference_number: Some(self.paid.reference_number.clone()),
            ..EventFilter::default()
        };
        let event = self.app().store.events(filter, 1).await.unwrap().remove(0);
        event.id.as_str().to_owned()
    }

    pub(super) async fn until_delivered(&self) {
        until(async || {
            let waiting = "select count(*) from outbox where state = 'queued'";
            self.service.number(waiting).await == 0
        })
        .await;
    }

    /// The exception of the held order.
    pub(super) async fn exception(&self) -> i64 {
        let filter = ExceptionFilter { resolved_too: true, ..ExceptionFilter::default() };
        self.app().store.exceptions(filter, 1).await.unwrap().remove(0).id
    }

    pub(super) async fn status_of(&self, order: &Order) -> &'static str {
        let found = self.app().store.order_by_reference(&order.reference_number).await.unwrap();
        found.unwrap().status.code()
    }

    pub(super) fn partner_id(&self, of: &Issued) -> PartnerId {
        self.app().directory.known().partner(&of.client_id).unwrap().id
    }

    /// Somebody new with this role, without a password yet.
    pub(super) async fn person(&self, login: &str, of: Option<&Issued>, role: Role) -> i64 {
        let partner = of.map(|issued| self.partner_id(issued));
        let by = Author::command_line(None);
        let name = Login::parse(login).unwrap();
        console::invite(self.app(), &name, partner, role, &by).await.unwrap();
        self.app().store.person_by_login(&name).await.unwrap().unwrap().id
    }

    /// Somebody new, let in by a link: no password has to be hashed for that.
    pub(super) async fn enter(&self, login: &str, of: Option<&Issued>, role: Role) -> Visitor {
        self.person(login, of, role).await;
        self.enter_again(login).await
    }

    /// The same person with one more browser.
    pub(super) async fn enter_again(&self, login: &str) -> Visitor {
        let login = Login::parse(login).unwrap();
        let link = console::entry(self.app(), &login, &Author::command_line(None)).await.unwrap();
        let answer = self.service.get(link.path.expose_secret()).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        let id = self.app().store.person_by_login(&login).await.unwrap().unwrap().id;
        Visitor { id, login: login.as_str().to_owned(), cookie: session_cookie(&answer).unwrap() }
    }

    /// An owner of the service itself.
    pub(super) async fn operator(&self) -> Visitor {
        self.enter("olga", None, Role::Owner).await
    }

    /// An owner of "Loja".
    pub(super) async fn owner(&self) -> Visitor {
        self.enter("ana@loja.ao", Some(&self.service.partner), Role::Owner).await
    }

    /// An owner of "Outra".
    pub(super) async fn stranger(&self) -> Visitor {
        self.enter("zeca@outra.ao", Some(&self.service.stranger), Role::Owner).await
    }

    pub(super) async fn get(&self, who: &Visitor, target: &str) -> Answer {
        let headers = [("cookie", who.cookie.as_str()), ("accept-language", "en")];
        self.service.call(Method::GET, target, &headers, "").await
    }

    /// A form of one of our own pages.
    pub(super) async fn post(&self, who: &Visitor, target: &str, form: &str) -> Answer {
        self.post_with(&[("cookie", &who.cookie)], target, form).await
    }

    pub(super) async fn post_with(
        &self,
        headers: &[(&str, &str)],
        target: &str,
        form: &str,
    ) -> Answer {
        let own = [FORM, ("origin", self.service.origin()), ("sec-fetch-site", "same-origin")];
        let language = [("accept-language", "en")];
        let headers: Vec<_> =
            own.into_iter().chain(language).chain(headers.iter().copied()).collect();
        self.service.call(Method::POST, target, &headers, form.to_owned()).await
    }

    /// How often the history tells this, as "actor action subject".
    pub(super) async fn told(&self, actor: &str, action: &str, subject: &str) -> i64 {
        let query = format!(
            "select count(*) from audit where actor = '{actor}' and action = '{action}'
             and subject = '{subject}'"
        );
        self.service.number(&query).await
    }

    /// Every id and secret of the merchant "Loja": nobody else may see one.
    pub(super) async fn marks_of_loja(&self) -> Vec<String> {
        let loja = &self.service.partner;
        let mut marks = vec![
            "loja-".to_owned(),
            "ana@loja.ao".to_owned(),
            loja.client_id.as_str().to_owned(),
            loja.client_secret.expose_secret().to_owned(),
            loja.application.webhook_secret.expose_secret().to_owned(),
            application(loja).to_owned(),
            self.request_id.clone(),
            self.event().await,
        ];
        for order in [&self.paid, &self.open, &self.held] {
            marks.push(order.reference_number.as_str().to_owned());
        }
        marks
    }

    /// All of "Loja" that somebody could change.
    pub(super) async fn state_of_loja(&self) -> String {
        let store = &self.app().store;
        let mut state = String::new();
        for order in [&self.paid, &self.open, &self.held] {
            let reference = order.reference_number.clone();
            let events =
                EventFilter { reference_number: Some(reference.clone()), ..EventFilter::default() };
            state += &format!("{:?}\n", store.dossier(&reference).await.unwrap());
            state += &format!("{:?}\n", store.events(events, 10).await.unwrap());
        }
        let all = ExceptionFilter { resolved_too: true, ..ExceptionFilter::default() };
        state += &format!("{:?}\n", store.exceptions(all, 10).await.unwrap());
        let id = self.partner_id(&self.service.partner);
        state += &format!("{:?}\n", store.people(Some(id)).await.unwrap());
        for secrets in [
            "partners where name = 'Loja' and previous_secret_hash is null",
            "applications where name = 'Loja' and previous_webhook_secret is null",
        ] {
            state += &format!("{} {secrets}\n", self.service.count(secrets).await);
        }
        state
    }
}

/// An order over the API: the id of the request, and the order.
pub(super) async fn create(
    service: &TestService,
    partner: &Issued,
    id: &str,
    webhook_url: &str,
) -> (String, Order) {
    let token = service.token(partner).await;
    let mut body = service.order_to(id, webhook_url);
    body["applicationUUID"] = application(partner).into();
    let answer = service.create(&token, &body).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    let reference = answer.json()["data"]["referenceNumber"].as_str().unwrap().to_owned();
    let reference = ReferenceNumber::parse(&reference).unwrap();
    let order = service.app.store.order_by_reference(&reference).await.unwrap().unwrap();
    (answer.header("x-request-id").unwrap().to_owned(), order)
}

/// Looks again and again until it is so; each look lets others work.
pub(super) async fn until(look: impl AsyncFn() -> bool) {
    patiently(async {
        while !look().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// What the browser keeps of an answer.
pub(super) fn session_cookie(answer: &Answer) -> Option<String> {
    let set = answer.headers.get_all("set-cookie").iter();
    let mut set = set.filter_map(|value| value.to_str().ok());
    let session = set.find(|value| value.starts_with("__Host-svc-console="))?;
    session.split(';').next().map(str::to_owned)
}

/// A text of a page as a browser shows it.
pub(super) fn unescaped(html: &str) -> String {
    let signs = [("&#38;", "&"), ("&#39;", "'"), ("&#34;", "\""), ("&#60;", "<"), ("&#62;", ">")];
    signs.iter().fold(html.to_owned(), |text, (code, sign)| text.replace(code, sign))
}

/// What stands between two texts for the first time.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// Where the button "older" leads.
pub(super) fn next_page(answer: &Answer) -> Option<String> {
    between(&answer.text, "rel=\"next\" href=\"", "\"").map(unescaped)
}

/// Every order of a list page, in its order.
pub(super) fn orders_on(answer: &Answer) -> Vec<String> {
    ids_on(answer, "<td class=\"wide\" data-label=\"\"><a href=\"/console/orders/")
}

pub(super) fn ids_on(answer: &Answer, before: &str) -> Vec<String> {
    let parts = answer.text.split(before).skip(1);
    parts.map(|part| part.split('"').next().unwrap().to_owned()).collect()
}
