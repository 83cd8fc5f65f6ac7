//! One question to the service when the shop opens: wrong settings are found now, not by the first payer.

use hyper::Method;
use serde_json::Value;
use svc_client::Error;

use crate::Shop;

/// The shop opens whatever comes of it: the service may start later.
pub(crate) async fn run(shop: Shop) {
    let application = shop.client.application_uuid();
    // The first event, if there is one: all of the credentials are needed for it.
    let target = format!("/svcpartner/events?applicationUUID={application}&limit=1");
    let told: Result<Value, Error> = shop.client.call(Method::GET, &target, None).await;
    let service = &shop.settings.base_url;
    match told {
        Ok(_) => {}
        Err(fault @ Error::Refused { .. }) => tracing::warn!(
            service,
            %fault,
            "the payment service refuses this shop, so nobody can pay: check SVC_BASE_URL, SVC_CLIENT_ID, \
             SVC_CLIENT_SECRET and SVC_PUBLISHABLE_KEY"
        ),
        Err(fault) => tracing::warn!(
            service,
            %fault,
            "the payment service does not answer, and nobody can pay before it does; is SVC_BASE_URL right?"
        ),
    }
}
