//! The hosts that an application's webhooks may go to, where somebody named them.

use std::collections::BTreeSet;
use std::fmt;

use url::Url;

use super::UrlRules;

/// Names and addresses as URLs have them: in lower case and ASCII, without a dot at the end.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct WebhookHosts(BTreeSet<String>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHosts {
    #[error("{0:?} is not the name of a host; give it without https://, port and path")]
    NotAHost(String),
    #[error("at most {} hosts can be named", WebhookHosts::MAX)]
    TooMany,
}

impl WebhookHosts {
    const MAX: usize = 64;

    pub fn parse(names: &[impl AsRef<str>]) -> Result<Self, NotHosts> {
        let hosts = names.iter().map(|name| host_of_name(name.as_ref()));
        let hosts: BTreeSet<_> = hosts.collect::<Result<_, _>>()?;
        if hosts.len() > Self::MAX {
            return Err(NotHosts::TooMany);
        }
        Ok(Self(hosts))
    }

    /// What the store kept, trusted because only `to_string` makes it.
    pub fn restore(stored: &str) -> Self {
        Self(stored.split(' ').map(str::to_owned).collect())
    }

    /// Whatever the port and path.
    pub fn includes(&self, url: &str) -> bool {
        let host = Url::parse(url).ok().and_then(|url| host(&url));
        host.is_some_and(|host| self.0.contains(&host))
    }
}

impl fmt::Display for WebhookHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, host) in self.0.iter().enumerate() {
            f.write_str(if place > 0 { " " } else { "" })?;
            f.write_str(host)?;
        }
        Ok(())
    }
}

fn host_of_name(name: &str) -> Result<String, NotHosts> {
    let not_a_host = || NotHosts::NotAHost(name.to_owned());
    let url = UrlRules::default().page(&format!("https://{name}/")).map_err(|_| not_a_host())?;
    let host = host(&url).ok_or_else(not_a_host)?;
    let names_a_port = name.contains(':') && !name.ends_with(']');
    match url.path() == "/" && url.query().is_none() && url.fragment().is_none() && !names_a_port {
        true => Ok(host),
        false => Err(not_a_host()),
    }
}

fn host(url: &Url) -> Option<String> {
    Some(url.host_str()?.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_in_every_spelling_and_only_whole() {
        let hosts = WebhookHosts::parse(&["Loja.ao", "café.ao.", "8.8.8.8", "[2606:4700::1111]"]);
        let hosts = hosts.unwrap();
        for url in [
            "https://loja.ao/hook",
            "https://LOJA.ao.:8443/other?x=1",
            "https://xn--caf-dma.ao/h",
            "https://0x08080808/h",
            "https://[2606:4700:0::1111]/h",
        ] {
            assert!(hosts.includes(url), "{url}");
        }
        for url in [
            "https://a.loja.ao/hook",
            "https://oja.ao/hook",
            "https://loja.ao.evil.example/hook",
            "https://loja.ao@evil.example/hook",
            "https://evil.example/loja.ao",
            "nothing",
        ] {
            assert!(!hosts.includes(url), "{url}");
        }
        assert_eq!(WebhookHosts::restore(&hosts.to_string()), hosts);
    }

    #[test]
    fn what_is_more_or_less_than_a_host_is_refused() {
        for name in [
            "",
            " ",
            "https://loja.ao",
            "loja.ao/",
            "loja.ao/hook",
            "loja.ao:443",
            "a@loja.ao",
            "loja.ao?",
            "loja.ao#",
            "loja.ao\\",
            "loja .ao",
            "loja.ao\n",
            "*",
            "*.loja.ao",
        ] {
            let refused = WebhookHosts::parse(&[name]);
            assert_eq!(refused, Err(NotHosts::NotAHost(name.to_owned())), "{name:?}");
        }
        let many: Vec<_> = (0..=WebhookHosts::MAX).map(|number| format!("{number}.ao")).collect();
        assert_eq!(WebhookHosts::parse(&many), Err(NotHosts::TooMany));
    }
}
