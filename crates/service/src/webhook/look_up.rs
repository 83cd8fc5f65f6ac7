//! One look-up with the eyes of the destination guard, for whoever wants to know whether it sees.

use super::guard::{Guard, GuardError};
use crate::config::WebhookConfig;

/// What became of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// So many addresses, all of which may be used.
    Found(usize),
    /// It has an address that is not public.
    Refused,
    NotFound(String),
}

/// Looks a host up as a delivery would.
pub async fn look_up(config: &WebhookConfig, private_targets: bool, host: &str) -> LookUp {
    let guard = match Guard::new(&config.name_servers, private_targets) {
        Ok(guard) => guard,
        Err(fault) => return LookUp::NotFound(fault.to_string()),
    };
    match guard.addresses(host).await {
        Ok(addresses) => LookUp::Found(addresses.len()),
        Err(GuardError::NotPublic) => LookUp::Refused,
        Err(GuardError::NoSuchHost(_)) => LookUp::NotFound("there is no such name".to_owned()),
        Err(GuardError::NotFound(why)) => LookUp::NotFound(why),
    }
}
