//! A real service on a real socket, with two partners and a client to call it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use svc_service::app::{App, Clock, StartError};
use svc_service::config::Config;
use svc_service::credentials::{self, Issued};
use svc_service::domain::Environment;
use svc_service::server::Server;

use super::TestDatabase;

/// Ends with the test; its database goes after it.
pub(crate) struct TestService {
    pub(crate) app: App,
    /// The partner most tests are.
    pub(crate) partner: Issued,
    /// Somebody else.
    pub(crate) stranger: Issued,
    base_url: String,
    client: Client<HttpConnector, Full<Bytes>>,
    server: tokio::task::JoinHandle<()>,
    database: std::sync::Arc<TestDatabase>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    /// Empty if it came packed.
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl TestService {
    pub(crate) async fn start(database: TestDatabase) -> Self {
        Self::start_with(database, |_| {}).await
    }

    pub(crate) async fn start_with(
        database: TestDatabase,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        Self::start_on(database.into(), Clock::system(), adjust).await
    }

    /// Production behind a proxy of this network.
    pub(crate) async fn start_production(database: TestDatabase, proxies: &str) -> Self {
        Self::start_with(database, |config| is_production(config, proxies)).await
    }

    /// The same at a time that stands still.
    pub(crate) async fn start_standing_production(database: TestDatabase, proxies: &str) -> Self {
        let adjust = |config: &mut Config| is_production(config, proxies);
        Self::start_on(database.into(), Clock::standing(super::at(0)), adjust).await
    }

    /// At a time that stands still.
    pub(crate) async fn start_standing(database: TestDatabase) -> Self {
        Self::start_on(database.into(), Clock::standing(super::at(0)), |_| {}).await
    }

    /// A second service on the same database. On SQLite only tests do that.
    pub(crate) async fn another_node(&self) -> Self {
        self.another_node_with(|_| {}).await
    }

    pub(crate) async fn another_node_with(&self, adjust: impl FnOnce(&mut Config)) -> Self {
        Self::start_on(self.database.clone(), Clock::system(), adjust).await
    }

    /// Its data are still there.
    pub(crate) async fn stop(&mut self) {
        self.server.abort();
        let _ = (&mut self.server).await;
    }

    /// The data of it as a command opens them.
    pub(crate) async fn open_again(
        &self,
        adjust: impl FnOnce(&mut Config),
    ) -> Result<App, StartError> {
        let mut config = Config::sandbox(([127, 0, 0, 1], 0).into());
        adjust(&mut config);
        App::open(config, &self.database.database()).await
    }

    async fn start_on(
        database: std::sync::Arc<TestDatabase>,
        clock: Clock,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config::sandbox(([127, 0, 0, 1], 0).into());
        config.private_webhook_targets = true;
        adjust(&mut config);
        let app = App::open_at(config, &database.database(), clock).await.unwrap();
        let partner = credentials::create_partner(&app, "Loja").await.unwrap();
        let stranger = credentials::create_partner(&app, "Outra").await.unwrap();
        let server = Server::bind(app.clone()).await.unwrap();
        let base_url = format!("http://{}", server.address());
        let server = tokio::spawn(async move {
            server.run(std::future::pending()).await;
        });
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { app, partner, stranger, base_url, client, server, database }
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request =
            Request::builder().method(method).uri(format!("{}{target}", self.base_url));
        for (name, value) in headers {
            request = request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let answer = self.client.request(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let plain = !parts.headers.contains_key("content-encoding");
        let text = if plain { String::from_utf8(bytes.to_vec()).unwrap() } else { String::new() };
        Answer { status: parts.status, headers: parts.headers, bytes, text }
    }

    /// Straight SQL, past the service.
    pub(crate) async fn sql(&self, statement: &str) {
        self.database.sql(statement).await;
    }

    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.database.count(table).await
    }

    /// The one number a query gives.
    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.database.number(query).await
    }

    /// Whether these bytes stand anywhere in the database.
    pub(crate) async fn holds(&self, text: &str) -> bool {
        self.database.holds(text).await
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.call(Method::GET, target, &[], "").await
    }

    /// POST /token as this partner with these form fields.
    pub(crate) async fn token_answer(&self, partner: &Issued, form: &str) -> Answer {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let pair =
            format!("{}:{}", partner.client_id.as_str(), partner.client_secret.expose_secret());
        let basic = format!("Basic {}", STANDARD.encode(pair));
        let headers = [
            ("authorization", basic.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        self.call(Method::POST, "/token", &headers, form.to_owned()).await
    }

    pub(crate) async fn token(&self, partner: &Issued) -> String {
        let answer = self.token_answer(partner, "grant_type=client_credentials").await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn create(&self, token: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.call(Method::POST, "/svcpartner/createPaymentOrder", &headers, body.to_string()).await
    }

    pub(crate) async fn query(&self, token: &str, application: &str, id: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let target = format!(
            "/svcpartner/paymentByExternalTransaction?externalTransactionId={id}&applicationUUID={application}"
        );
        self.call(Method::GET, &target, &[("authorization", &bearer)], "").await
    }

    /// How browsers name where we are.
    pub(crate) fn origin(&self) -> &str {
        &self.base_url
    }

    pub(crate) fn application(&self) -> &str {
        application(&self.partner)
    }

    /// A body that is right in every field.
    pub(crate) fn order(&self, id: &str) -> Value {
        order(application(&self.partner), id)
    }

    /// The same, with webhooks that go there.
    pub(crate) fn order_to(&self, id: &str, webhook_url: &str) -> Value {
        let mut body = self.order(id);
        let info = body["additionalInfo"].as_str().unwrap();
        body["additionalInfo"] = info.replace("http://127.0.0.1:3000/hook", webhook_url).into();
        body
    }
}

fn is_production(config: &mut Config, proxies: &str) {
    config.environment = Some(Environment::Production);
    config.private_webhook_targets = false;
    config.public_url = Some("https://api.svc.ao".parse().unwrap());
    config.trusted_proxies = vec![proxies.parse().unwrap()];
    config.master_key = Some(STANDARD.encode([7; 32]).into());
}

pub(crate) fn application(partner: &Issued) -> &str {
    partner.application.publishable_key.application_uuid().as_str()
}

pub(crate) fn order(application: &str, id: &str) -> Value {
    let info = json!({
        "returnUrl": "http://127.0.0.1:3000/ok",
        "cancelUrl": "http://127.0.0.1:3000/cancel",
        "webhookUrl": "http://127.0.0.1:3000/hook",
    });
    json!({
        "externalTransactionId": id,
        "clientId": "user-1",
        "applicationUUID": application,
        "name": "Livro",
        "amount": 15_000,
        "quantity": 1,
        "additionalInfo": info.to_string(),
    })
}

impl Drop for TestService {
    fn drop(&mut self) {
        self.server.abort();
    }
}
