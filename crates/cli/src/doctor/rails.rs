//! The connectors of acquirers: whether they answer, and what they offer.

use svc_service::app::Clock;
use svc_service::app::Random;
use svc_service::config::{Config, RailConfig};
use svc_service::domain::{Environment, PaymentMethod};
use svc_service::rails::{Rail, Rails};

use super::Check;

const ID: &str = "rail";

pub(super) async fn examine(config: &Config, environment: Environment) -> Vec<Check> {
    let run = hex::encode(Random::system().bytes::<8>());
    let rails = match Rails::new(environment, &config.rails, &run) {
        Ok(rails) => rails,
        Err(fault) => {
            return vec![Check::failed(ID, fault.to_string(), "mend [[rail]] in the settings")];
        }
    };
    if environment == Environment::Production && config.rails.is_empty() {
        let fix = "name a connector in [[rail]] of the settings; see docs/rails.md";
        return vec![Check::warning(ID, "there is none: payers are offered no method", fix)];
    }
    let mut checks: Vec<_> = config.rails.iter().filter_map(in_the_clear).collect();
    for rail in rails.all() {
        checks.extend(asked(rail).await);
    }
    checks.extend(own_method(&rails));
    checks
}

/// The one that payers are always offered (spec 1). A rail that says nothing may offer it.
fn own_method(rails: &Rails) -> Option<Check> {
    let own = PaymentMethod::Direct;
    let mut told = rails.all().iter().map(|rail| rail.capabilities());
    let may_be_offered =
        told.any(|can| can.is_none_or(|can| can.methods.iter().any(|terms| terms.method == own)));
    (!may_be_offered).then(|| {
        let code = own.code();
        let fix = format!("have a connector offer {code}: docs/rails.md says how");
        Check::warning("methods", format!("no rail offers {code}, which payers always have"), fix)
    })
}

/// What we ask is signed, what is answered is not. Production refuses to start so.
fn in_the_clear(rail: &RailConfig) -> Option<Check> {
    (!rail.is_safe()).then(|| {
        let what = format!("{} is called over plain http on another machine", rail.name);
        Check::warning(ID, what, "give it an https address")
    })
}

async fn asked(rail: &Rail) -> Option<Check> {
    let Rail::Connector(connector) = rail else { return None };
    let name = rail.name();
    Some(match connector.refresh(Clock::system().now()).await {
        Ok(()) => {
            let can = rail.capabilities();
            let methods = can.iter().flat_map(|can| &can.methods).map(|terms| terms.method.code());
            let methods = methods.collect::<Vec<_>>().join(", ");
            Check::ok(ID, format!("{name} answers and offers {methods}"))
        }
        Err(fault) => Check::failed(
            ID,
            format!("{name}: {fault}"),
            "start the connector, or mend the url and secret of its [[rail]]",
        ),
    })
}
