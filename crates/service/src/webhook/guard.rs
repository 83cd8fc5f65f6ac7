//! The destination guard: the addresses a name has at the moment we connect, all public or none used.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hyper_util::client::legacy::connect::dns::Name;

use crate::domain::is_public_address;

/// Asked twice, a look-up still ends before the exchange does.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
const LOOKUP_RETRIES: usize = 1;
/// Whatever its DNS says.
const TTL_MAX: Duration = Duration::from_secs(30);
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(5);
const NAMES_CACHED: u64 = 4_096;
const LOOKUPS_MAX: usize = 512;
/// Of a host, in each family. The time to connect is divided among them: with a dozen, none would have enough of it.
const TRIED_MAX: usize = 4;

/// Looks names up for the very connection that is about to be made, so that no answer can change
/// between the check and the use.
#[derive(Clone)]
pub(super) struct Guard {
    /// Shared: the client copies its connector for every request.
    resolver: Arc<TokioResolver>,
    private_targets: bool,
    /// Counts the look-ups: each tries other addresses where there are many.
    turn: Arc<AtomicUsize>,
    dice: RandomState,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GuardError {
    #[error("no such host: {0}")]
    NoSuchHost(String),
    #[error("the name of the host was not found: {0}")]
    NotFound(String),
    /// One is enough: which of several addresses is used is not ours to choose.
    #[error("the host has an address that is not public")]
    NotPublic,
}

impl Guard {
    /// With the given name servers, or the machine's own.
    pub(super) fn new(servers: &[SocketAddr], private_targets: bool) -> Result<Self, NetError> {
        let with = |servers: &[SocketAddr]| {
            let config = ResolverConfig::from_parts(None, Vec::new(), name_servers(servers));
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        let mut builder = match servers {
            [] => TokioResolver::builder_tokio().unwrap_or_else(|fault| {
                // A sandbox without a network still reaches this machine.
                tracing::warn!(%fault, "no name servers: webhooks to names will fail");
                with(&[])
            }),
            given => with(given),
        };
        bound(builder.options_mut());
        let resolver = Arc::new(builder.build()?);
        Ok(Self { resolver, private_targets, turn: Arc::default(), dice: RandomState::new() })
    }

    pub(super) async fn addresses(&self, host: &str) -> Result<Vec<SocketAddr>, GuardError> {
        // With the dot it is the whole name: no search list is tried.
        let whole = format!("{}.", host.trim_end_matches('.'));
        let found = self.resolver.lookup_ip(whole).await.map_err(|fault| {
            match fault.is_no_records_found() {
                true => GuardError::NoSuchHost(host.to_owned()),
                false => GuardError::NotFound(fault.to_string()),
            }
        })?;
        let addresses: Vec<_> = found.iter().collect();
        if !self.private_targets && !addresses.iter().copied().all(is_public_address) {
            return Err(GuardError::NotPublic);
        }
        if addresses.is_empty() {
            return Err(GuardError::NoSuchHost(host.to_owned()));
        }
        // The connector puts the port in.
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect())
    }
}

fn name_servers(servers: &[SocketAddr]) -> Vec<NameServerConfig> {
    let over = |mut connection: ConnectionConfig, port| {
        connection.port = port;
        connection
    };
    servers
        .iter()
        .map(|server| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
            let connections = connections.map(|connection| over(connection, server.port()));
            NameServerConfig::new(server.ip(), true, connections.into())
        })
        .collect()
}

fn bound(options: &mut ResolverOpts) {
    options.timeout = LOOKUP_TIMEOUT;
    options.attempts = LOOKUP_RETRIES;
    // Both families: an address we did not see is one we did not check.
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.cache_size = NAMES_CACHED;
    options.positive_max_ttl = Some(TTL_MAX);
    options.negative_max_ttl = Some(NEGATIVE_TTL_MAX);
    options.max_active_requests = LOOKUPS_MAX;
}

impl tower::Service<Name> for Guard {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = GuardError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, GuardError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), GuardError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, host: Name) -> Self::Future {
        let guard = self.clone();
        Box::pin(async move {
            let addresses = guard.addresses(host.as_str()).await?;
            let turn = guard.turn.fetch_add(1, Ordering::Relaxed);
            // Not by the turn itself: of two hosts that are looked up one after the other each has every second.
            Ok(some_of(addresses, guard.dice.hash_one(turn)).into_iter())
        })
    }
}

/// As many of each family as are tried: this machine may reach only one of them. The others have their turn later.
fn some_of(addresses: Vec<SocketAddr>, dice: u64) -> Vec<SocketAddr> {
    let (mut of_4, mut of_6): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(SocketAddr::is_ipv4);
    for family in [&mut of_4, &mut of_6] {
        if family.len() > TRIED_MAX {
            let first = dice % family.len() as u64;
            family.rotate_left(first as usize);
            family.truncate(TRIED_MAX);
        }
    }
    of_4.append(&mut of_6);
    of_4
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn of_many_addresses_each_has_its_turn() {
        let of_4 = |last: u8| SocketAddr::from(([203, 0, 113, last], 0));
        let of_6 = |last: u16| SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 0));
        let few: Vec<_> = (0..4).map(of_4).chain((0..4).map(of_6)).collect();
        assert_eq!(some_of(few.clone(), 7), few, "few are left as they are");
        let many: Vec<_> = (0..5).map(of_4).chain((0..12).map(of_6)).collect();
        let tried: Vec<_> = (0..12).map(|dice| some_of(many.clone(), dice)).collect();
        for some in &tried {
            assert_eq!(some.iter().filter(|address| address.is_ipv4()).count(), TRIED_MAX);
            assert_eq!(some.len(), 2 * TRIED_MAX);
        }
        assert_eq!(tried.iter().flatten().collect::<HashSet<_>>().len(), many.len());
    }
}
