//! A certificate authority for tests, and the certificates, good and bad, of their merchants.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Its certificate is in a file for as long as it lives.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = std::env::temp_dir().join(format!("{}.pem", super::unique()));
        std::fs::write(&file, issuer.pem()).unwrap();
        Self { issuer, file }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// A server with a certificate for this host; `alpn` are the protocols it offers.
    pub(crate) fn good(&self, host: &str, alpn: &[&str]) -> ServerConfig {
        let mut config = self.signed(&params(host));
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    pub(crate) fn expired(&self, host: &str) -> ServerConfig {
        let mut params = params(host);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.signed(&params)
    }

    pub(crate) fn not_yet_valid(&self, host: &str) -> ServerConfig {
        let mut params = params(host);
        params.not_before = date_time_ymd(4000, 1, 1);
        self.signed(&params)
    }

    fn signed(&self, params: &CertificateParams) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        server(certificate.der().clone(), &key)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

pub(crate) fn self_signed(host: &str) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let certificate = params(host).self_signed(&key).unwrap();
    server(certificate.der().clone(), &key)
}

fn params(host: &str) -> CertificateParams {
    CertificateParams::new([host.to_owned()]).unwrap()
}

fn server(certificate: CertificateDer<'static>, key: &KeyPair) -> ServerConfig {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}
