//! A merchant's backend: token, create, query.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::http::{Answer, call};

/// A public address that is never called: orders here stay pending.
const WEBHOOK_URL: &str = "https://shop.example.ao/api/svc/webhook";

#[derive(Clone)]
pub(crate) struct Merchant {
    pub(crate) base_url: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) application_uuid: String,
}

impl Merchant {
    /// A merchant with the credentials that `svc demo` and `svc partner create` print.
    pub(crate) fn new(base_url: String, credentials: &Value) -> Self {
        let text = |key: &str| credentials[key].as_str().expect("a credential is text").to_owned();
        Self {
            base_url,
            client_id: text("clientId"),
            client_secret: text("clientSecret"),
            application_uuid: text("applicationUUID"),
        }
    }

    pub(crate) fn ask_token(&self) -> Answer {
        let basic = STANDARD.encode(format!("{}:{}", self.client_id, self.client_secret));
        let headers = format!(
            "authorization: Basic {basic}\r\ncontent-type: application/x-www-form-urlencoded\r\n"
        );
        call(&self.base_url, "POST /token", &headers, "grant_type=client_credentials")
            .expect("the server answers")
    }

    pub(crate) fn token(&self) -> String {
        let answer = self.ask_token();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["access_token"].as_str().expect("a token is text").to_owned()
    }

    pub(crate) fn create(&self, token: &str, id: &str) -> std::io::Result<Answer> {
        self.create_with(token, id, WEBHOOK_URL)
    }

    pub(crate) fn create_with(
        &self,
        token: &str,
        id: &str,
        webhook_url: &str,
    ) -> std::io::Result<Answer> {
        let headers =
            format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
        let body = self.order(id, webhook_url);
        call(&self.base_url, "POST /svcpartner/createPaymentOrder", &headers, &body)
    }

    /// The body of `createPaymentOrder`.
    pub(crate) fn order(&self, id: &str, webhook_url: &str) -> String {
        let urls = json!({
            "returnUrl": "https://shop.example.ao/ok",
            "cancelUrl": "https://shop.example.ao/cancel",
            "webhookUrl": webhook_url,
        });
        json!({
            "externalTransactionId": id,
            "clientId": "user-1",
            "applicationUUID": self.application_uuid,
            "name": "Livro",
            "amount": 15000,
            "quantity": 1,
            "additionalInfo": urls.to_string(),
        })
        .to_string()
    }

    pub(crate) fn query(&self, token: &str, id: &str) -> Answer {
        let request = format!(
            "GET /svcpartner/paymentByExternalTransaction?externalTransactionId={id}\
             &applicationUUID={}",
            self.application_uuid
        );
        call(&self.base_url, &request, &format!("authorization: Bearer {token}\r\n"), "")
            .expect("the server answers")
    }
}

/// The reference number of an answer that must be the 200 envelope.
pub(crate) fn reference(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    let envelope = answer.json();
    assert_eq!((&envelope["code"], &envelope["message"]), (&json!(200), &json!("OK")));
    envelope["data"]["referenceNumber"].as_str().expect("a reference is text").to_owned()
}
