//! The partner API as a merchant calls it, with the merchant's own variables.

use anyhow::{Context, anyhow, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// What a merchant's backend has in its environment.
#[derive(clap::Args, Clone)]
pub(crate) struct MerchantArgs {
    /// Address of the service
    #[arg(
        long,
        env = "SVC_BASE_URL",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL",
        global = true
    )]
    base_url: String,
    /// The application's publishable key
    #[arg(long, env = "SVC_PUBLISHABLE_KEY", value_name = "KEY", global = true)]
    publishable_key: Option<String>,
    /// The partner's client id
    #[arg(long, env = "SVC_CLIENT_ID", value_name = "ID", global = true)]
    client_id: Option<String>,
}

/// No flag: anyone on the machine can list those.
const CLIENT_SECRET: &str = "SVC_CLIENT_SECRET";

pub(crate) struct MerchantApi {
    base_url: String,
    application_uuid: String,
    bearer: String,
    client: HttpClient,
}

type HttpClient = Client<hyper_rustls::HttpsConnector<HttpConnector>, Full<Bytes>>;

impl MerchantApi {
    /// Asks for a token.
    pub(crate) async fn sign_in(args: &MerchantArgs) -> anyhow::Result<Self> {
        let missing = |name: &str| anyhow!("{name} is not set; svc demo prints the variables");
        let key = args.publishable_key.as_ref().ok_or_else(|| missing("SVC_PUBLISHABLE_KEY"))?;
        let id = args.client_id.as_ref().ok_or_else(|| missing("SVC_CLIENT_ID"))?;
        let secret = std::env::var(CLIENT_SECRET).map_err(|_| missing(CLIENT_SECRET))?;
        let uuid = crate::application::application_uuid(key)?;
        let mut api = Self {
            base_url: args.base_url.trim_end_matches('/').to_owned(),
            application_uuid: uuid.as_str().to_owned(),
            bearer: format!("Basic {}", STANDARD.encode(format!("{id}:{secret}"))),
            client: client()?,
        };
        let form = "grant_type=client_credentials&validity_period=3600";
        let token = api.send(Method::POST, "/token", FORM, form.to_owned()).await?;
        let token = token["access_token"].as_str().context("the service gave no token")?;
        api.bearer = format!("Bearer {token}");
        Ok(api)
    }

    pub(crate) fn application_uuid(&self) -> &str {
        &self.application_uuid
    }

    /// The `data` of a successful answer; the service's own sentence when it refuses.
    pub(crate) async fn call(
        &self,
        method: Method,
        target: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let text = body.map(|body| body.to_string()).unwrap_or_default();
        let mut answer = self.send(method, target, JSON, text).await?;
        Ok(answer["data"].take())
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        kind: &str,
        body: String,
    ) -> anyhow::Result<Value> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{target}", self.base_url))
            .header("authorization", &self.bearer)
            .header("content-type", kind)
            .header("accept-language", "en")
            .body(Full::new(Bytes::from(body)))
            .with_context(|| format!("{} is not an address", self.base_url))?;
        let answer =
            self.client.request(request).await.with_context(|| {
                format!("no service answers at {}; is it running?", self.base_url)
            })?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await?.to_bytes();
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !status.is_success() {
            let told = answer["message"].as_str().unwrap_or("no reason was given");
            bail!("the service answered {}: {told}", status.as_u16());
        }
        Ok(answer)
    }
}

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

fn client() -> anyhow::Result<HttpClient> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::aws_lc_rs::default_provider())
        .context("the machine's certificates cannot be read")?
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
