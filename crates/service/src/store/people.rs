//! People who sign in to the console, their sessions and invitations.

use jiff::Timestamp;

use super::audit::audited;
use super::portable::{Cells, Statement, Value, values};
use super::{Result, Store, StoreError};
use crate::domain::{Actor, Author, Login, PartnerId, Role};

#[derive(Clone, Debug)]
pub struct Person {
    pub id: i64,
    pub login: String,
    /// Whose orders they see; `None` for operators, who see all.
    pub partner: Option<PartnerId>,
    pub role: Role,
    pub password_hash: Option<String>,
    /// The seed of one-time codes, sealed.
    pub totp_sealed: Option<Vec<u8>>,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
}

impl Person {
    /// As whom they act.
    pub fn actor(&self) -> Actor {
        match self.partner {
            None => Actor::Operator(self.login.clone()),
            Some(_) => Actor::User(self.login.clone()),
        }
    }
}

const PERSON_COLUMNS: &str = "people.id, login, partner_id, role, password_hash, totp_sealed, \
     people.created_at_ms, disabled_at_ms";

fn person(cells: &mut Cells) -> Result<Person> {
    Ok(Person {
        id: cells.integer()?,
        login: cells.text()?,
        partner: cells.maybe_integer()?.map(PartnerId),
        role: {
            let word = cells.text()?;
            Role::from_text(&word).ok_or_else(|| StoreError::Corrupt(format!("role {word}")))?
        },
        password_hash: cells.maybe_text()?,
        totp_sealed: cells.maybe_bytes()?,
        created_at: cells.time()?,
        disabled_at: cells.maybe_time()?,
    })
}

/// A link that lets somebody in.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    pub token_hash: Vec<u8>,
    pub kind: InvitationKind,
    pub expires_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvitationKind {
    /// Once, to choose a password.
    Welcome,
    /// As it is, until it expires; for the demo of a sandbox.
    Entry,
}

impl InvitationKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Welcome => "welcome",
            Self::Entry => "entry",
        }
    }
}

#[derive(Clone, Debug)]
pub struct NewSession {
    pub token_hash: Vec<u8>,
    pub person: i64,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A change of a person that is not made by signing in.
#[derive(Clone, Debug)]
pub enum PersonChange {
    Role(Role),
    Disable,
    Enable,
    /// Sealed seed, or off.
    Totp(Option<Vec<u8>>),
    Password(String),
}

impl Store {
    /// `false` if the login is taken.
    pub async fn create_person(
        &self,
        login: &Login,
        partner: Option<PartnerId>,
        role: Role,
        at: Timestamp,
        by: &Author,
    ) -> Result<bool> {
        let create = Statement::new(
            "insert into people (login, partner_id, role, created_at_ms) values (?1, ?2, ?3, ?4)
             on conflict do nothing",
            values![login.as_str(), partner.map(|id| id.0), role.as_str(), at],
        );
        let note = audited(at, by, "person.create", login.as_str(), Some(role.as_str()), "");
        self.transact(vec![create, note]).await
    }

    pub async fn person_by_login(&self, login: &Login) -> Result<Option<Person>> {
        let sql = format!("select {PERSON_COLUMNS} from people where login = ?1");
        self.select_one(Statement::new(sql, values![login.as_str()]), person).await
    }

    pub async fn person(&self, id: i64) -> Result<Option<Person>> {
        let sql = format!("select {PERSON_COLUMNS} from people where id = ?1");
        self.select_one(Statement::new(sql, values![id]), person).await
    }

    /// Of one partner, or of the service itself.
    pub async fn people(&self, partner: Option<PartnerId>) -> Result<Vec<Person>> {
        let (which, values) = match partner {
            Some(partner) => ("partner_id = ?1", values![partner.0]),
            None => ("partner_id is null", values![]),
        };
        let sql = format!("select {PERSON_COLUMNS} from people where {which} order by login");
        self.select(Statement::new(sql, values), person).await
    }

    pub async fn invite(
        &self,
        person: &Person,
        invitation: NewInvitation,
        at: Timestamp,
        by: &Author,
    ) -> Result<()> {
        let sql = "insert into invitations (token_hash, person_id, kind, expires_at_ms)
                   values (?1, ?2, ?3, ?4)";
        // A link that was lost must not be found: a new one takes the place of those before it.
        let replace = "delete from invitations where person_id = ?1 and kind = 'welcome'
                       and ?2 = 'welcome' and token_hash <> ?3";
        let NewInvitation { token_hash, kind, expires_at } = invitation;
        let kind = kind.as_str();
        let new = values![token_hash.clone(), person.id, kind, expires_at];
        let older = values![person.id, kind, token_hash];
        self.transact(vec![
            Statement::new(sql, new),
            Statement::new(replace, older),
            audited(at, by, "person.invite", &person.login, Some(kind), ""),
        ])
        .await
        .map(drop)
    }

    /// Who is let in by this link.
    pub async fn invited(
        &self,
        token_hash: Vec<u8>,
        kind: InvitationKind,
        now: Timestamp,
    ) -> Result<Option<Person>> {
        let sql = format!(
            "select {PERSON_COLUMNS} from invitations join people on people.id = person_id
             where token_hash = ?1 and kind = ?2 and expires_at_ms > ?3 and disabled_at_ms is null"
        );
        self.select_one(Statement::new(sql, values![token_hash, kind.as_str(), now]), person).await
    }

    /// The link is used up, and every older session of this person ends; `false` if it was used
    /// already, or has expired by now.
    pub async fn welcome(
        &self,
        token_hash: Vec<u8>,
        person: &Person,
        password_hash: String,
        now: Timestamp,
        at: Timestamp,
        by: &Author,
    ) -> Result<bool> {
        let use_up = "delete from invitations where token_hash = ?1 and kind = 'welcome'
                      and expires_at_ms > ?2";
        let set = "update people set password_hash = ?2 where id = ?1";
        self.transact(vec![
            Statement::new(use_up, values![token_hash, now]),
            Statement::new(set, values![person.id, password_hash]),
            end_sessions(person.id),
            audited(at, by, "person.set_password", &person.login, None, ""),
        ])
        .await
    }

    pub async fn change_person(
        &self,
        person: &Person,
        change: PersonChange,
        at: Timestamp,
        by: &Author,
    ) -> Result<()> {
        self.change_if(person, change, "", at, by).await.map(drop)
    }

    /// What somebody changes who proved to know this password; `false` if it is another by now.
    pub async fn change_own(
        &self,
        person: &Person,
        change: PersonChange,
        at: Timestamp,
        by: &Author,
    ) -> Result<bool> {
        self.change_if(person, change, " and coalesce(password_hash, '') = ?3", at, by).await
    }

    async fn change_if(
        &self,
        person: &Person,
        change: PersonChange,
        condition: &str,
        at: Timestamp,
        by: &Author,
    ) -> Result<bool> {
        let id = person.id;
        let known = person.password_hash.clone().unwrap_or_default();
        let set = |column: &str, mut value: Vec<Value>| {
            if !condition.is_empty() {
                value.extend(values![known.clone()]);
            }
            let sql = format!("update people set {column} = ?2 where id = ?1{condition}");
            Statement::new(sql, value)
        };
        // A link sent before would let somebody choose another password.
        let ends_invitation = matches!(change, PersonChange::Disable | PersonChange::Password(_));
        let (update, action, after) = match change {
            PersonChange::Role(role) => {
                (set("role", values![id, role.as_str()]), "person.set_role", Some(role.as_str()))
            }
            PersonChange::Disable => {
                (set("disabled_at_ms", values![id, at]), "person.disable", None)
            }
            PersonChange::Enable => {
                (set("disabled_at_ms", values![id, None::<i64>]), "person.enable", None)
            }
            PersonChange::Totp(sealed) => {
                let after = if sealed.is_some() { "on" } else { "off" };
                (set("totp_sealed", values![id, sealed]), "person.set_totp", Some(after))
            }
            PersonChange::Password(hash) => {
                (set("password_hash", values![id, hash]), "person.set_password", None)
            }
        };
        // Whatever changed, who is signed in proves it again; whoever changed it is let in anew.
        let note = audited(at, by, action, &person.login, after, "");
        let mut statements = vec![update, end_sessions(id), note];
        if ends_invitation {
            let end = "delete from invitations where person_id = ?1 and kind = 'welcome'";
            statements.push(Statement::new(end, values![id]));
        }
        self.transact(statements).await
    }

    /// Sessions that ended and links that nobody used in time.
    pub async fn forget_ended_access(&self, now: Timestamp) -> Result<()> {
        // Each by itself: one transaction ends where its first statement changes nothing.
        for table in ["sessions", "invitations"] {
            let sql = format!("delete from {table} where expires_at_ms < ?1");
            self.transact_one(sql, values![now]).await?;
        }
        Ok(())
    }

    /// Takes a one-time code; `false` if it, or a later one, was used.
    pub async fn use_totp_step(&self, person: i64, step: i64) -> Result<bool> {
        let sql = "update people set totp_step = ?2 where id = ?1 and totp_step < ?2";
        self.transact_one(sql, values![person, step]).await
    }

    pub async fn open_session(
        &self,
        session: NewSession,
        login: &str,
        at: Timestamp,
        by: &Author,
    ) -> Result<()> {
        let NewSession { token_hash, person, opened_at, expires_at } = session;
        let open = "insert into sessions (token_hash, person_id, created_at_ms, seen_at_ms,
                    expires_at_ms) values (?1, ?2, ?3, ?3, ?4)";
        self.transact(vec![
            Statement::new(open, values![token_hash, person, opened_at, expires_at]),
            audited(at, by, "person.sign_in", login, None, ""),
        ])
        .await
        .map(drop)
    }

    /// Whose session it is, unless it or its owner has ended; and when it was last used.
    pub async fn session(
        &self,
        token_hash: Vec<u8>,
        now: Timestamp,
    ) -> Result<Option<(Person, Timestamp)>> {
        let sql = format!(
            "select {PERSON_COLUMNS}, seen_at_ms from sessions join people on people.id = person_id
             where token_hash = ?1 and expires_at_ms > ?2 and disabled_at_ms is null"
        );
        let read = |cells: &mut Cells| Ok((person(cells)?, cells.time()?));
        self.select_one(Statement::new(sql, values![token_hash, now]), read).await
    }

    pub async fn session_seen(&self, token_hash: Vec<u8>, at: Timestamp) -> Result<()> {
        let sql = "update sessions set seen_at_ms = ?2 where token_hash = ?1";
        self.transact_one(sql, values![token_hash, at]).await.map(drop)
    }

    pub async fn end_session(
        &self,
        token_hash: Vec<u8>,
        login: &str,
        at: Timestamp,
        by: &Author,
    ) -> Result<()> {
        let end = Statement::new("delete from sessions where token_hash = ?1", values![token_hash]);
        self.transact(vec![end, audited(at, by, "person.sign_out", login, None, "")])
            .await
            .map(drop)
    }
}

fn end_sessions(person: i64) -> Statement {
    Statement::new("delete from sessions where person_id = ?1", values![person])
}
