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
        })
    }

    /// Gets a token from the service at this address.
    pub(crate) async fn caller(&self, address: &str) -> anyhow::Result<Caller> {
        let pair = format!("{}:{}", self.client_id, self.client_secret);
        let mut caller = Caller {
            client: Client::builder(TokioExecutor::new()).build_http(),
            address: address.to_owned(),
            authorization: format!("Basic {}", STANDARD.encode(pair)),
            application_uuid: self.application_uuid.clone(),
        };
        let form = "application/x-www-form-urlencoded";
        let (_, answer) =
            caller.call("POST", "/token", form, "grant_type=client_credentials".into()).await?;
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
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", &self.authorization)
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
