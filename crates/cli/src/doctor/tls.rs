//! The certificate and its key: readable, of one another, for our name, and good for a while.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use svc_service::app::Clock;
use svc_service::config::Config;
use url::Host;
use x509_cert::der::Decode;

use super::Check;
use super::machine::private;

/// Whoever renews by hand wants to know before this.
const SOON: SignedDuration = SignedDuration::from_hours(21 * 24);

pub(super) fn examine(config: &Config) -> Vec<Check> {
    let Some(files) = &config.tls else { return Vec::new() };
    let chain = match read_chain(&files.certificate) {
        Ok(chain) => chain,
        Err(why) => {
            let fix = "give the whole chain in PEM, readable by the service's user";
            return vec![Check::failed("certificate", why, fix)];
        }
    };
    let mut checks = vec![fits(&chain, &files.key), life(&chain), private("key file", &files.key)];
    let host = config.public_url.as_ref().and_then(|url| url.host());
    checks.extend(host.map(|host| named(&chain, &host, config.trusted_proxies.is_empty())));
    checks
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let told = |fault: &dyn std::fmt::Display| format!("{}: {fault}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|fault| told(&fault))?;
    let chain: Vec<_> = found.collect::<Result<_, _>>().map_err(|fault| told(&fault))?;
    if chain.is_empty() {
        return Err(told(&"there is no certificate in it"));
    }
    Ok(chain)
}

/// As the service would use them.
fn fits(chain: &[CertificateDer<'static>], path: &Path) -> Check {
    let fix = "give the private key of this certificate in PEM, readable by the service's user";
    let key = match PrivateKeyDer::from_pem_file(path) {
        Ok(key) => key,
        Err(fault) => {
            return Check::failed("private key", format!("{}: {fault}", path.display()), fix);
        }
    };
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let built = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain.to_vec(), key));
    match built {
        Ok(_) => Check::ok("private key", "fits the certificate"),
        Err(fault) => Check::failed("private key", fault.to_string(), fix),
    }
}

/// `direct`: callers see this certificate, and not one of a proxy's.
fn named(chain: &[CertificateDer<'static>], host: &Host<&str>, direct: bool) -> Check {
    const ID: &str = "certificate's name";
    let name = match host {
        Host::Domain(name) => ServerName::try_from(*name).ok(),
        Host::Ipv4(address) => Some(ServerName::IpAddress((*address).into())),
        Host::Ipv6(address) => Some(ServerName::IpAddress((*address).into())),
    };
    let own = chain.first().and_then(|own| ParsedCertificate::try_from(own).ok());
    let is_for = own.zip(name).is_some_and(|(own, name)| verify_server_name(&own, &name).is_ok());
    let fix =
        "get a certificate for that name; it comes first in the file, before those of its chain";
    let told = format!("not for {host}, the host of the public URL");
    match (is_for, direct) {
        (true, _) => Check::ok(ID, format!("good for {host}")),
        (false, true) => Check::failed(ID, format!("{told}: browsers would refuse it"), fix),
        (false, false) => Check::warning(ID, format!("{told}: your proxy must expect that"), fix),
    }
}

/// The certificate that ends first decides.
fn life(chain: &[CertificateDer<'static>]) -> Check {
    let renew = "renew it and start the service again: it reads the files at its start";
    let mut first = None::<(Timestamp, Timestamp)>;
    for certificate in chain {
        let Some(period) = period(certificate) else {
            return Check::failed("certificate", "it cannot be read", "give it in PEM");
        };
        first = Some(first.map_or(period, |(from, to)| (from.max(period.0), to.min(period.1))));
    }
    let (from, to) = first.expect("a chain is not empty");
    let now = Clock::system().now();
    let left = to.duration_since(now);
    let days = left.as_hours() / 24;
    if now < from {
        Check::failed("certificate", format!("not good before {from}"), "set the clock, or wait")
    } else if left <= SignedDuration::ZERO {
        Check::failed("certificate", format!("ended at {to}"), renew)
    } else if left < SOON {
        Check::warning("certificate", format!("ends in {days} days, at {to}"), renew)
    } else {
        Check::ok("certificate", format!("good for {days} days, until {to}"))
    }
}

fn period(certificate: &CertificateDer<'_>) -> Option<(Timestamp, Timestamp)> {
    let read = x509_cert::Certificate::from_der(certificate).ok()?;
    let validity = read.tbs_certificate.validity;
    let time = |time: x509_cert::time::Time| {
        let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok()?;
        Timestamp::from_second(seconds).ok()
    };
    Some((time(validity.not_before)?, time(validity.not_after)?))
}
