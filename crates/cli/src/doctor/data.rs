//! The database: is it there, is it ours, does it keep what it acknowledges, does the key fit.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use svc_service::app::Clock;
use svc_service::config::Config;
use svc_service::domain::Environment;
use svc_service::keys::{KeyError, Keys, id_of};
use svc_service::store::{Database, Inspection, Schema, inspect};

use super::{Check, machine};
use crate::settings::Settings;

/// A clock before this was never set.
const BUILT_AFTER: &str = "2026-01-01T00:00:00Z";
const BUILT_BEFORE: &str = "2100-01-01T00:00:00Z";

/// And which environment this is, by the database or else by the settings.
pub(super) async fn examine(settings: &Settings) -> (Vec<Check>, Environment) {
    let Settings { config, database, .. } = settings;
    let asked = config.environment;
    let looked = match inspect(database).await {
        Ok(looked) => looked,
        Err(fault) => {
            let fix = match database {
                Database::Sqlite(_) => "mend --database; a new deployment begins with svc migrate",
                Database::Postgres(_) => {
                    "start PostgreSQL, or mend --database: host, name, user and password"
                }
            };
            let checks = vec![Check::failed("database", fault.to_string(), fix), clock(None)];
            return (checks, asked.unwrap_or(Environment::Sandbox));
        }
    };
    let stored = looked.environment.as_deref().and_then(|name| name.parse().ok());
    let environment = stored.or(asked).unwrap_or(Environment::Sandbox);
    let mut checks = vec![written(&looked), schema(&looked), belongs(asked, stored)];
    checks.extend(durability(&looked, environment));
    checks.push(master_key(config, &looked, environment));
    checks.push(clock(looked.now));
    if let Database::Sqlite(path) = database {
        checks.push(machine::private("database file", path));
    }
    (checks, environment)
}

fn written(looked: &Inspection) -> Check {
    match &looked.unwritable {
        None => Check::ok("database", format!("{} answers", looked.engine)),
        Some(why) => Check::failed(
            "database",
            why,
            "give it to the user of the service, and run svc doctor as that user",
        ),
    }
}

fn schema(looked: &Inspection) -> Check {
    let latest = looked.schema_latest;
    let Some(Schema { version, needed }) = looked.schema else {
        return Check::failed("schema", "the database is empty", "run svc migrate");
    };
    match version.cmp(&latest) {
        Ordering::Greater if needed > latest => Check::failed(
            "schema",
            format!("version {version}, of a newer svc; this one knows {latest}"),
            "run the newer svc, or restore the backup made before the upgrade",
        ),
        Ordering::Greater => Check::ok(
            "schema",
            format!(
                "version {version}, of a newer svc, beside which this one (version {latest}) can run"
            ),
        ),
        Ordering::Less => Check::warning(
            "schema",
            format!("version {version} of {latest}"),
            "make a backup; svc migrate or the next svc serve brings it up to date",
        ),
        Ordering::Equal => Check::ok("schema", format!("version {version}, up to date")),
    }
}

fn belongs(asked: Option<Environment>, stored: Option<Environment>) -> Check {
    match (asked, stored) {
        (Some(asked), Some(stored)) if asked != stored => Check::failed(
            "environment",
            format!(
                "the database is of a {}, the settings say {}",
                stored.as_str(),
                asked.as_str()
            ),
            "give each environment a database of its own",
        ),
        (None, None) => Check::warning(
            "environment",
            "neither the settings nor the database name one",
            "name it with --environment, so that a wrong path does not become a new sandbox",
        ),
        (Some(named), _) | (None, Some(named)) => Check::ok("environment", named.as_str()),
    }
}

fn durability(looked: &Inspection, environment: Environment) -> Vec<Check> {
    let told = |(name, value, safe): &(&'static str, String, bool)| {
        let what = format!("{name} is {value}");
        let fix = "switch it on: a power cut would lose acknowledged orders";
        match (safe, environment) {
            (true, _) => Check::ok("durability", what),
            // The embedded database is put right at every start.
            (false, _) if looked.engine == "sqlite" => {
                Check::warning("durability", what, "svc serve sets it at its next start")
            }
            (false, Environment::Production) => Check::failed("durability", what, fix),
            (false, Environment::Sandbox) => Check::warning("durability", what, fix),
        }
    };
    looked.durability.iter().map(told).collect()
}

fn master_key(config: &Config, looked: &Inspection, environment: Environment) -> Check {
    let Some(key) = &config.master_key else {
        if looked.master_key_id.is_some() && !looked.keeps_master_key {
            return Check::failed(
                "master key",
                "none is given, and this database goes by one",
                "name its file in SVC_SERVER_MASTER_KEY_FILE",
            );
        }
        return match environment {
            Environment::Sandbox => Check::ok("master key", "the sandbox keeps its own"),
            Environment::Production => Check::failed(
                "master key",
                "none is given",
                "make one with svc keygen --out FILE and name the file in SVC_SERVER_MASTER_KEY_FILE",
            ),
        };
    };
    let keys = Keys::derive(key).and_then(|keys| match &config.other_master_key {
        Some(other) => keys.beside(other),
        None => Ok(keys),
    });
    let (keys, stored) = match (keys, &looked.master_key_id) {
        (Err(fault), _) => {
            return Check::failed("master key", fault.to_string(), "give the right file");
        }
        (Ok(_), None) => {
            return Check::ok("master key", "well formed; the database has met none yet");
        }
        (Ok(keys), Some(stored)) => (keys, stored),
    };
    let other = keys.other_id();
    let known = [Some(keys.id()), other.clone()];
    let is_known = |id: &String| known.contains(&Some(id.clone()));
    match keys.inherit(stored) {
        Err(KeyError::OtherKey) => Check::failed(
            "master key",
            "this database goes by another one",
            "give the service that one: no stored secret can be used without it",
        ),
        Err(fault) => Check::failed("master key", fault.to_string(), "give the right file"),
        Ok(_) if !looked.served_with.iter().all(is_known) => Check::failed(
            "master key",
            "the service has begun with another one since",
            "give that one as well, as other_master_key: go on with \"Changing the master key\" in docs/operate.md",
        ),
        Ok(_) if other.as_deref() == Some(id_of(stored)) => Check::warning(
            "master key",
            "has not taken over from the other one yet",
            "once every node was started with both, run svc rekey",
        ),
        Ok(_) if other.is_some() => Check::warning(
            "master key",
            "another one is given beside the one this database goes by",
            "if svc rekey has run, take the other out of the settings and restart; if it is to take over, go \
             on with \"Changing the master key\" in docs/operate.md",
        ),
        Ok(_) => Check::ok("master key", "is the one this database goes by"),
    }
}

/// Against the database's, and against the calendar.
fn clock(theirs: Option<Timestamp>) -> Check {
    let ours = Clock::system().now();
    let bound = |text: &str| text.parse::<Timestamp>().expect("a date of ours");
    if ours < bound(BUILT_AFTER) || ours > bound(BUILT_BEFORE) {
        return Check::failed(
            "clock",
            format!("says {ours}, which cannot be right"),
            "set it, and run NTP",
        );
    }
    let off = theirs.map(|theirs| ours.duration_since(theirs).abs());
    match off {
        Some(off) if off > Clock::OFF_MAX => Check::failed(
            "clock",
            format!("{:#} away from the database's", SignedDuration::from_secs(off.as_secs())),
            "run NTP on both machines: deadlines and tokens go by it",
        ),
        Some(_) => Check::ok("clock", format!("{ours}, as the database says")),
        None => Check::ok("clock", ours.to_string()),
    }
}
