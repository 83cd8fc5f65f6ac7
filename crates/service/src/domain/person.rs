//! Who may do what in the console.

use super::words::words;

words! {
    /// What somebody is there for.
    pub enum Role {
        Owner = "owner",
        Developer = "developer",
        Support = "support",
        Reader = "reader",
    }
}

/// What needs a permission; looking at one's own needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    CancelOrders,
    ResendWebhooks,
    /// Acting as payers and rails would, and moving the clock; in a sandbox.
    Simulate,
    ManageKeys,
    ManagePeople,
    /// Money that fits no order is the operator's to give back or to take.
    ResolveExceptions,
    /// What everybody did.
    ReadAudit,
}

/// Operators act for the service; all others for their partner, and see nothing else.
pub fn may(role: Role, is_operator: bool, permission: Permission) -> bool {
    use Permission::*;
    match permission {
        CancelOrders => matches!(role, Role::Owner | Role::Support),
        ResendWebhooks | Simulate => role != Role::Reader,
        ManageKeys => matches!(role, Role::Owner | Role::Developer),
        ManagePeople => role == Role::Owner,
        ResolveExceptions => is_operator && matches!(role, Role::Owner | Role::Support),
        ReadAudit => is_operator,
    }
}

/// What somebody signs in with: a short name or an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a login is 2 to 100 letters, digits or . _ - + @, and not \"cli\"")]
pub struct NotALogin;

impl Login {
    pub const CHARS_MAX: usize = 100;

    pub fn parse(text: &str) -> Result<Self, NotALogin> {
        let text = text.trim().to_ascii_lowercase();
        let fits = (2..=Self::CHARS_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+@".contains(&b))
            // What the history calls the command line.
            && text != "cli";
        if fits { Ok(Self(text)) } else { Err(NotALogin) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_may_do_nothing_and_an_owner_everything_of_its_own() {
        use Permission::*;
        let all = [
            CancelOrders,
            ResendWebhooks,
            Simulate,
            ManageKeys,
            ManagePeople,
            ResolveExceptions,
            ReadAudit,
        ];
        for permission in all {
            let of_operators = matches!(permission, ResolveExceptions | ReadAudit);
            assert_eq!(may(Role::Owner, false, permission), !of_operators, "{permission:?}");
            assert!(may(Role::Owner, true, permission), "{permission:?}");
            assert!(!may(Role::Reader, false, permission), "{permission:?}");
            assert_eq!(may(Role::Reader, true, permission), permission == ReadAudit);
        }
        assert!(!may(Role::Support, true, ManageKeys) && !may(Role::Developer, true, CancelOrders));
    }

    #[test]
    fn a_login_is_in_lower_case_and_short() {
        assert_eq!(Login::parse(" Ana.Silva@Loja.ao ").unwrap().as_str(), "ana.silva@loja.ao");
        assert_eq!(Login::parse("ana\n").unwrap().as_str(), "ana");
        for wrong in ["", "a", "a b", "ana<script>", &"a".repeat(101), "joão", "CLI"] {
            assert!(Login::parse(wrong).is_err(), "{wrong}");
        }
    }
}
