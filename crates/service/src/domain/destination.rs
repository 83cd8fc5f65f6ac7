//! Which URLs a merchant may give us, and which addresses a webhook may reach.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// What this service demands of the URLs in `additionalInfo`.
#[derive(Clone, Debug, Default)]
pub struct UrlRules {
    /// Production: no plain http anywhere.
    pub https_only: bool,
    /// Local work in the sandbox: webhooks may go to this machine and private networks.
    pub private_targets: bool,
    /// Our own host, which must not be sent its own webhooks.
    pub own_host: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlIssue {
    #[error("must be an absolute http or https URL")]
    NotAbsolute,
    #[error("must not contain spaces, backslashes or control characters")]
    Characters,
    #[error("must have at most {max} characters")]
    TooLong { max: usize },
    #[error("must use https in production")]
    HttpsRequired,
    #[error("must not carry a user name or password")]
    Credentials,
    #[error("must name a public host")]
    NotPublic,
    #[error("must use port 80, 443 or one from 1024 on that no database uses")]
    Port,
    #[error("must not point at this service")]
    OwnHost,
    #[error("must go to one of the hosts named for its application")]
    NotNamed,
}

impl UrlRules {
    pub const CHARS_MAX: usize = 2_048;
    /// Of a name, as DNS has it; written in other letters it becomes longer than it was given.
    const HOST_BYTES_MAX: usize = 253;

    /// A page of the merchant: `returnUrl`, `cancelUrl`.
    pub fn page(&self, text: &str) -> Result<Url, UrlIssue> {
        if text.len() > Self::CHARS_MAX {
            return Err(UrlIssue::TooLong { max: Self::CHARS_MAX });
        }
        // The URL standard drops tabs and newlines and turns backslashes round: what we store
        // would not be what the merchant wrote, and other parsers would read another host.
        // Most are all of such letters as need no closer look.
        let is_harmless = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        if !text.bytes().all(is_harmless)
            && text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\')
        {
            return Err(UrlIssue::Characters);
        }
        let url = Url::parse(text).map_err(|_| UrlIssue::NotAbsolute)?;
        // `http:host` parses, but is not what anybody means by an absolute URL.
        let absolute = text.split_once("://").is_some_and(|(scheme, _)| {
            scheme.eq_ignore_ascii_case(url.scheme()) && matches!(url.scheme(), "http" | "https")
        });
        if !absolute {
            return Err(UrlIssue::NotAbsolute);
        }
        if self.https_only && url.scheme() != "https" {
            return Err(UrlIssue::HttpsRequired);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlIssue::Credentials);
        }
        // The host stands in the policies of our pages, where `*` and `;` would say something else.
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if url.domain().is_some_and(|name| !name.bytes().all(is_plain)) {
            return Err(UrlIssue::Characters);
        }
        if url.host_str().is_some_and(|host| host.len() > Self::HOST_BYTES_MAX) {
            return Err(UrlIssue::NotAbsolute);
        }
        Ok(url)
    }

    /// Where webhooks go. Names are looked up again at every attempt: this only refuses what can never be right.
    pub fn webhook(&self, text: &str) -> Result<Url, UrlIssue> {
        let url = self.page(text)?;
        // As it is stored and requested, in which some letters take more room.
        if url.as_str().len() > Self::CHARS_MAX {
            return Err(UrlIssue::TooLong { max: Self::CHARS_MAX });
        }
        let port = url.port_or_known_default();
        if !matches!(port, Some(80 | 443 | 1024..)) || port.is_some_and(|p| DATA_PORTS.contains(&p))
        {
            return Err(UrlIssue::Port);
        }
        // `host.` is the same host.
        let host = url.host_str().map(|host| host.trim_end_matches('.'));
        if self.own_host.is_some() && host == self.own_host.as_deref() {
            return Err(UrlIssue::OwnHost);
        }
        let public = match url.host() {
            Some(Host::Domain(name)) => is_public_name(name),
            Some(Host::Ipv4(ip)) => is_public_address(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => is_public_address(IpAddr::V6(ip)),
            None => return Err(UrlIssue::NotAbsolute),
        };
        if !public && !self.private_targets {
            return Err(UrlIssue::NotPublic);
        }
        Ok(url)
    }
}

/// Databases and caches that take a POST for commands: no webhook handler listens there.
const DATA_PORTS: [u16; 8] = [1433, 2375, 3306, 5432, 6379, 9200, 11211, 27017];

/// True for global unicast only; everything special-purpose is refused (IANA registries).
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => !nets(&NOT_PUBLIC_V4).any(|net| net.contains(&address)),
        // Only 2000::/3 is handed out, which already leaves out loopback, mapped IPv4, NAT64,
        // unique-local, link-local and multicast.
        IpAddr::V6(_) => {
            nets(&["2000::/3"]).all(|net| net.contains(&address))
                && !nets(&NOT_PUBLIC_V6).any(|net| net.contains(&address))
        }
    }
}

const NOT_PUBLIC_V4: [&str; 16] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

// Teredo and protocol assignments, documentation (twice), 6to4.
const NOT_PUBLIC_V6: [&str; 4] = ["2001::/23", "2001:db8::/32", "3fff::/20", "2002::/16"];

fn nets(list: &'static [&'static str]) -> impl Iterator<Item = IpNet> {
    list.iter().map(|net| net.parse().expect("the table holds networks"))
}

/// A name that can exist in the public DNS: more than one label, not one of the local suffixes.
fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let top = name.rsplit('.').next().unwrap_or_default();
    let local = ["localhost", "local", "localdomain", "internal", "intranet", "lan"];
    name.contains('.') && !local.contains(&top) && !name.ends_with(".home.arpa")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn production() -> UrlRules {
        UrlRules { https_only: true, private_targets: false, own_host: Some("api.svc.ao".into()) }
    }

    fn sandbox() -> UrlRules {
        UrlRules::default()
    }

    #[test]
    fn what_is_written_shorter_than_it_is_requested_counts_as_it_is_requested() {
        let with = |letters: usize| format!("https://loja.ao/{}", "ã".repeat(letters));
        // Each letter is two bytes as it is written, and six as it is requested.
        assert!(sandbox().webhook(&with(338)).is_ok());
        for letters in [339, 1_016] {
            let refused = sandbox().webhook(&with(letters)).unwrap_err();
            assert!(matches!(refused, UrlIssue::TooLong { max: UrlRules::CHARS_MAX }));
        }
    }

    #[test]
    fn webhooks_go_to_public_hosts_only() {
        for private in [
            "http://127.0.0.1/h",
            "http://10.1.2.3/h",
            "http://169.254.169.254/latest",
            "http://[::1]/h",
            "http://0.0.0.0/h",
            "http://100.64.0.1/h",
            "http://192.168.0.9/h",
            "http://0x7f.1/h",
            "http://2130706433/h",
            "http://0177.0.0.1/h",
            "http://127.1/h",
            "http://[::ffff:127.0.0.1]/h",
            "http://[fe80::1]/h",
            "http://[fc00::1]/h",
            "http://[64:ff9b::7f00:1]/h",
            "http://[2002:7f00:1::]/h",
            "http://[2001::1]/h",
            "http://localhost/h",
            "http://localhost./h",
            "http://x.internal/h",
            "http://intranet/h",
            "http://a.localhost/h",
            "http://printer.local/h",
            "http://①②⑦.⓪.⓪.①/h",
        ] {
            assert_eq!(sandbox().webhook(private), Err(UrlIssue::NotPublic), "{private}");
            let open = UrlRules { private_targets: true, ..UrlRules::default() };
            assert!(open.webhook(private).is_ok(), "{private}");
        }
        for public in ["http://shop.ao/h", "https://8.8.8.8/h", "https://[2606:4700::1111]/h"] {
            assert!(sandbox().webhook(public).is_ok(), "{public}");
        }
    }

    #[test]
    fn production_wants_https_and_another_host_than_ours() {
        assert_eq!(production().webhook("http://shop.ao/h"), Err(UrlIssue::HttpsRequired));
        assert_eq!(production().page("http://shop.ao/h"), Err(UrlIssue::HttpsRequired));
        for own in ["https://api.svc.ao/h", "https://api.svc.ao./h", "https://API.svc.ao:8443/h"] {
            assert_eq!(production().webhook(own), Err(UrlIssue::OwnHost), "{own}");
        }
        assert!(production().webhook("https://shop.ao/h").is_ok());
    }

    #[test]
    fn strange_urls_are_refused_by_name() {
        let cases = [
            ("javascript:alert(1)", UrlIssue::NotAbsolute),
            ("data:text/html,x", UrlIssue::NotAbsolute),
            ("file:///etc/passwd", UrlIssue::NotAbsolute),
            ("ftp://shop.ao/", UrlIssue::NotAbsolute),
            ("/relative", UrlIssue::NotAbsolute),
            ("http:shop.ao", UrlIssue::NotAbsolute),
            ("", UrlIssue::NotAbsolute),
            ("https://shop.ao/a b", UrlIssue::Characters),
            ("https://shop.ao/\r\nX: y", UrlIssue::Characters),
            ("https://shop.ao\\@evil.ao/", UrlIssue::Characters),
            ("https://shop.ao/\t", UrlIssue::Characters),
            ("https://user:pw@shop.ao/", UrlIssue::Credentials),
            ("https://shop.ao:22/", UrlIssue::Port),
            ("https://shop.ao:25/", UrlIssue::Port),
            ("https://shop.ao:1023/", UrlIssue::Port),
            ("https://shop.ao:6379/", UrlIssue::Port),
        ];
        for (text, issue) in cases {
            assert_eq!(sandbox().webhook(text), Err(issue), "{text}");
        }
        for port in [80, 443, 1024, 3000, 8443] {
            assert!(sandbox().webhook(&format!("https://shop.ao:{port}/")).is_ok(), "{port}");
        }
    }

    #[test]
    fn international_names_are_kept_in_ascii() {
        let url = sandbox().webhook("https://caf\u{e9}.ao/h").unwrap();
        assert_eq!(url.host_str(), Some("xn--caf-dma.ao"));
        // Longer in ASCII than it was written.
        let host = "caf\u{e9}ao.".repeat(30);
        assert!(host.len() < UrlRules::HOST_BYTES_MAX);
        for url in [format!("https://{host}ao/h"), format!("https://{}ao/h", "a.".repeat(130))] {
            assert_eq!(sandbox().webhook(&url), Err(UrlIssue::NotAbsolute), "{url}");
        }
        assert!(sandbox().webhook(&format!("https://{}ao/h", "a.".repeat(125))).is_ok());
    }

    proptest! {
        #[test]
        fn no_private_ipv4_passes_in_any_spelling(low in any::<u32>(), octal in any::<bool>()) {
            let inside = std::net::Ipv4Addr::from(0x7f00_0000 | (low & 0x00ff_ffff));
            let number = u32::from(inside);
            let text = if octal { format!("http://0{number:o}/") } else { format!("http://{number:#x}/") };
            prop_assert_eq!(sandbox().webhook(&text), Err(UrlIssue::NotPublic));
        }

        #[test]
        fn parsing_any_text_never_panics(text in "\\PC{0,80}") {
            let _ = production().webhook(&text);
            let _ = sandbox().webhook(&format!("http://{text}"));
        }
    }
}
