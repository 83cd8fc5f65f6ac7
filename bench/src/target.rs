//! What is loaded, and the requests that load it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::Scenario;

/// An address and what it takes to call it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Target {
    pub address: String,
    pub client_id: String,
    pub client_secret: String,
    #[serde(rename = "applicationUUID")]
    pub application_uuid: String,
    pub token: String,
}

/// Ready-made requests of one scenario; only the id differs.
pub(crate) struct Requests {
    scenario: Scenario,
    host: HeaderValue,
    authorization: HeaderValue,
    application_uuid: String,
    seed: u64,
    stored: u64,
}

impl Requests {
    pub(crate) fn new(scenario: Scenario, target: &Target, seed: u64, stored: u64) -> Self {
        let authorization = match scenario {
            Scenario::Token => basic(target),
            Scenario::Create | Scenario::Query => format!("Bearer {}", target.token),
        };
        Self {
            scenario,
            host: HeaderValue::from_str(&target.address).expect("an address is a header value"),
            authorization: HeaderValue::from_str(&authorization).expect("base64 is a header value"),
            application_uuid: target.application_uuid.clone(),
            seed,
            stored,
        }
    }

    pub(crate) fn build(&self, number: u64) -> Request<Full<Bytes>> {
        let request = Request::builder()
            .header(HOST, self.host.clone())
            .header(AUTHORIZATION, self.authorization.clone());
        let built = match self.scenario {
            Scenario::Create => request
                .method("POST")
                .uri("/svcpartner/createPaymentOrder")
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .body(Full::from(self.order(&order_id(self.seed, number)))),
            Scenario::Query => {
                // Any of the stored orders, in no order.
                let which = mix(number ^ self.seed.rotate_left(17)) % self.stored.max(1);
                let (id, application) = (order_id(self.seed, which), &self.application_uuid);
                request
                    .uri(format!("/svcpartner/paymentByExternalTransaction?externalTransactionId={id}&applicationUUID={application}"))
                    .body(Full::default())
            }
            Scenario::Token => request
                .method("POST")
                .uri("/token")
                .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
                .body(Full::from("grant_type=client_credentials&validity_period=3600")),
        };
        built.expect("the parts are valid")
    }

    fn order(&self, id: &str) -> String {
        format!(
            r#"{{"externalTransactionId":"{id}","clientId":"user-{}","applicationUUID":"{}","name":"Livro de receitas","amount":15000,"quantity":1,"additionalInfo":"{{\"returnUrl\":\"https://shop.example.ao/ok\",\"cancelUrl\":\"https://shop.example.ao/cancel\",\"webhookUrl\":\"https://shop.example.ao/api/svc/webhook\"}}"}}"#,
            &id[6..14],
            self.application_uuid
        )
    }
}

pub(crate) fn basic(target: &Target) -> String {
    let pair = format!("{}:{}", target.client_id, target.client_secret);
    format!("Basic {}", STANDARD.encode(pair))
}

/// `order_` and something that looks like a random UUID, the same for the same numbers.
pub(crate) fn order_id(seed: u64, number: u64) -> String {
    let (a, b) = (mix(seed ^ mix(number)), mix(number.wrapping_add(seed << 20)));
    format!(
        "order_{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | ((b >> 48) & 0x3fff),
        b & 0xffff_ffff_ffff
    )
}

/// SplitMix64's finisher: spreads consecutive numbers evenly.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
