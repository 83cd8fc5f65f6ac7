//! Sandbox or production: one running service is one of them (spec 1, 2.1).

use super::ApplicationUuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    Sandbox,
    Production,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment is \"sandbox\" or \"production\"")]
pub struct UnknownEnvironment;

impl Environment {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Production => "production",
        }
    }

    pub fn key_prefix(self) -> &'static str {
        match self {
            Self::Sandbox => "pk_test_",
            Self::Production => "pk_live_",
        }
    }
}

impl std::str::FromStr for Environment {
    type Err = UnknownEnvironment;

    fn from_str(name: &str) -> Result<Self, UnknownEnvironment> {
        match name {
            "sandbox" => Ok(Self::Sandbox),
            "production" => Ok(Self::Production),
            _ => Err(UnknownEnvironment),
        }
    }
}

/// `pk_test_…` or `pk_live_…`: safe for browsers; names the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishableKey {
    environment: Environment,
    application: ApplicationUuid,
}

impl PublishableKey {
    pub fn new(environment: Environment, application: ApplicationUuid) -> Self {
        Self { environment, application }
    }

    /// Spec 2.1: what is left after `^pk_(test|live)_` is the `applicationUUID`.
    pub fn parse(key: &str) -> Option<Self> {
        [Environment::Sandbox, Environment::Production].into_iter().find_map(|environment| {
            let rest = key.strip_prefix(environment.key_prefix())?;
            let application = ApplicationUuid::parse(rest).ok()?;
            Some(Self { environment, application })
        })
    }

    pub fn environment(&self) -> Environment {
        self.environment
    }

    pub fn application_uuid(&self) -> &ApplicationUuid {
        &self.application
    }
}

impl std::fmt::Display for PublishableKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.environment.key_prefix(), self.application.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_uuid_is_the_key_without_its_prefix() {
        let key = PublishableKey::parse("pk_test_5f0c").unwrap();
        assert_eq!(key.environment(), Environment::Sandbox);
        assert_eq!(key.application_uuid().as_str(), "5f0c");
        assert_eq!(key.to_string(), "pk_test_5f0c");
        let live = PublishableKey::parse("pk_live_5f0c").unwrap();
        assert_eq!(live.environment(), Environment::Production);
    }

    #[test]
    fn other_prefixes_are_not_keys() {
        for bad in [
            "",
            "5f0c",
            "pk_prod_5f0c",
            "sk_test_5f0c",
            "pk_test_",
            "pk_test_pk_test_a",
            " pk_test_a",
        ] {
            assert_eq!(PublishableKey::parse(bad), None, "{bad}");
        }
    }
}
