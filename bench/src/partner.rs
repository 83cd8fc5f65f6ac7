//! A partner that calls the API as partners do, for drills.

use anyhow::{Context, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::process::{Data, svc};

/// Credentials; the application hears of every order from its creation on.
pub(crate) struct Partner {
    client_id: String,
    client_secret: String,
    application_uuid: String,
    webhook_secret: String,
}

/// An order as the API reports it.
pub(crate) struct Stored {
    pub reference: String,
    pub status: String,
}

impl Partner {
    pub(crate) async fn create(data: &Data) -> anyhow::Result<Self> {
        let made: Value =
            svc(&["partner", "create", "Drill", "--json", "--database", &data.url]).await?;
        let client_id = text(&made["clientId"])?;
        let application: Value = svc(&[
            "application",
            "create",
            "Drill",
            "--partner",
            &client_id,
            "--pending-event",
            "creation",
            "--json",
            "--database",
            &data.url,
        ])
        .await?;
        Ok(Self {
            client_id,
            client_secret: text(&made["clientSecret"])?,
            application_uuid: text(&application["applicationUUID"])?,
            webhook_secret: text(&application["webhookSecret"])?,
        })
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn secret(&self) -> &str {
        &self.client_secret
    }

    /// Everything that must stay secret.
    pub(crate) fn secrets(&self) -> Vec<String> {
        vec![self.client_secret.clone(), self.webhook_secret.clone()]
    }

    /// Gets a token from the service at this address.
    pub(crate) async fn caller(&self, address: &str) -> anyhow::Result<Caller> {
        let mut caller = Caller {
            client: Client::builder(TokioExecutor::new()).build_http(),
            address: address.to_owned(),
            authorization: String::new(),
            application_uuid: self.application_uuid.clone(),
        };
        let (_, answer) = caller.ask_token(&self.client_id, &self.client_secret).await?;
        caller.authorization = format!("Bearer {}", text(&answer["access_token"])?);
        Ok(caller)
    }
}

pub(crate) struct Caller {
    client: Client<HttpConnector, Full<Bytes>>,
    address: String,
    authorization: String,
    application_uuid: String,
}

impl Caller {
    /// The token it has.
    pub(crate) fn token(&self) -> &str {
        self.authorization.trim_start_matches("Bearer ")
    }

    async fn ask_token(&self, id: &str, secret: &str) -> anyhow::Result<(u16, Value)> {
        let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let (form, body) = ("application/x-www-form-urlencoded", "grant_type=client_credentials");
        self.call_as(&basic, "POST", "/token", form, body.into()).await
    }

    /// What wrong calls are answered, and the metrics: places where a secret might show.
    pub(crate) async fn wrong_calls(&self) -> anyhow::Result<String> {
        let mut answers = String::new();
        for (method, path, body) in [
            ("POST", "/svcpartner/createPaymentOrder", "{"),
            ("POST", "/svcpartner/createPaymentOrder", r#"{"amount":"x"}"#),
            ("POST", "/sandbox/simulate", "[]"),
            ("GET", "/svcpartner/paymentByExternalTransaction?nothing=1", ""),
            ("GET", "/nowhere", ""),
        ] {
            let (_, answer) = self.call(method, path, "application/json", body.into()).await?;
            answers += &answer.to_string();
        }
        let client_secret = self.token();
        let (_, answer) = self.ask_token("partner", client_secret).await?;
        answers += &answer.to_string();
        Ok(answers + &self.metrics().await?)
    }

    /// A figure of the service.
    pub(crate) async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let metrics = self.metrics().await?;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.with_context(|| format!("no {name}"))?.trim().parse()?)
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        let request = Request::get(format!("http://{}/metrics", self.address));
        let answer = self.client.request(request.body(Full::default())?).await?;
        Ok(String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()).into_owned())
    }

    /// The reference that was answered.
    pub(crate) async fn create(&self, id: &str, webhook_url: &str) -> anyhow::Result<String> {
        let (status, answer) = self.try_create(id, webhook_url).await?;
        ensure!(status == 200, "a creation was answered {status}: {answer}");
        text(&answer["data"]["referenceNumber"])
    }

    /// Status and body, whatever they are.
    pub(crate) async fn try_create(
        &self,
        id: &str,
        webhook_url: &str,
    ) -> anyhow::Result<(u16, Value)> {
        let info = json!({
            "returnUrl": "https://shop.example.ao/ok", "cancelUrl": "https://shop.example.ao/no",
            "webhookUrl": webhook_url,
        });
        let body = json!({
            "externalTransactionId": id, "clientId": "user-1", "name": "Livro", "amount": 15_000,
            "applicationUUID": self.application_uuid, "quantity": 1,
            "additionalInfo": info.to_string(),
        });
        let path = "/svcpartner/createPaymentOrder";
        self.call("POST", path, "application/json", body.to_string()).await
    }

    /// The status that was answered.
    pub(crate) async fn simulate(&self, id: &str, outcome: &str) -> anyhow::Result<String> {
        let body = json!({
            "externalTransactionId": id, "applicationUUID": self.application_uuid,
            "outcome": outcome,
        });
        let answer = self.post("/sandbox/simulate", &body).await?;
        text(&answer["data"]["paymentStatus"])
    }

    pub(crate) async fn query(&self, id: &str) -> anyhow::Result<Option<Stored>> {
        let application = &self.application_uuid;
        let path = format!(
            "/svcpartner/paymentByExternalTransaction?externalTransactionId={id}&applicationUUID={application}"
        );
        let (status, answer) = self.call("GET", &path, "", String::new()).await?;
        match status {
            404 => Ok(None),
            200 => Ok(Some(Stored {
                reference: text(&answer["data"]["referenceNumber"])?,
                status: text(&answer["data"]["paymentStatus"])?,
            })),
            _ => bail!("a query was answered {status}"),
        }
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let (status, answer) =
            self.call("POST", path, "application/json", body.to_string()).await?;
        ensure!(status == 200, "{path} was answered {status}: {answer}");
        Ok(answer)
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> anyhow::Result<(u16, Value)> {
        self.call_as(&self.authorization, method, path, content_type, body).await
    }

    async fn call_as(
        &self,
        authorization: &str,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> anyhow::Result<(u16, Value)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", authorization)
            .header("content-type", content_type)
            .body(Full::from(body))?;
        let answer = self.client.request(request).await?;
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).context("an answer in JSON")?))
    }
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().context("a text in the answer")?.to_owned())
}
