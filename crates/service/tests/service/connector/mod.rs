//! The contract for connectors that are processes of their own (rails.md 6), spoken with one that is.

mod answers;
mod offers;
mod queue;
mod silence;
mod starts;
mod statement;
mod unheard;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use svc_service::config::{Config, RailConfig};
use svc_service::domain::Environment;

use crate::support::{TestConnector, TestDatabase, TestPaying};

/// A production service, which has no simulator to fall back on, and its connector.
async fn production(database: TestDatabase) -> (TestPaying, TestConnector) {
    let connector = TestConnector::start().await;
    let paying = production_with(database, connector.config()).await;
    TestConnector::asked_by(&paying.app).await.unwrap();
    (paying, connector)
}

async fn production_with(database: TestDatabase, rail: RailConfig) -> TestPaying {
    TestPaying::start_with(database, |config| is_production(config, rail)).await
}

fn is_production(config: &mut Config, rail: RailConfig) {
    config.environment = Some(Environment::Production);
    config.master_key = Some(STANDARD.encode([7; 32]).into());
    config.rails = vec![rail];
}
