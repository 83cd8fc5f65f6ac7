//! Issuing and rotating what partners hold: client ids, secrets, publishable keys (spec 2.1).

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::SignedDuration;
use secrecy::{ExposeSecret, SecretString};

use crate::app::{App, Random};
use crate::domain::{ApplicationUuid, Author, ClientId, Label, PublishableKey, after};
use crate::store::{
    NewApplication, NewPartner, PendingEvent, Rotation, StoreError, WebhookRotation,
};

/// Two secrets are one more to lose.
const OVERLAP_MAX: SignedDuration = SignedDuration::from_hours(400 * 24);

/// Everything a new partner needs. The secrets are shown once and exist nowhere else in the clear.
#[derive(Debug)]
pub struct Issued {
    pub client_id: ClientId,
    pub client_secret: SecretString,
    pub application: IssuedApplication,
}

#[derive(Debug)]
pub struct IssuedApplication {
    pub publishable_key: PublishableKey,
    pub webhook_secret: SecretString,
}

pub async fn create_partner(app: &App, name: &str) -> Result<Issued, StoreError> {
    let client_id = ClientId::parse(format!("svc_{}", random_text::<12>(app)))
        .expect("base64 is printable ASCII");
    let client_secret = client_secret(app);
    let (application, issued) = new_application(app, &client_id, name, PendingEvent::Instrument)?;
    app.store
        .create_partner(NewPartner {
            name: name.to_owned(),
            client_id: client_id.clone(),
            secret_hash: app.keys.hash(client_secret.expose_secret()),
            application,
            at: app.clock.now(),
        })
        .await?;
    Ok(Issued { client_id, client_secret, application: issued })
}

/// The old secret works until `overlap` has passed; tokens issued so far stop working now. Nothing, if the client
/// is not known or, unless `anyway`, the secret before that one still works: it would end now.
pub async fn rotate_client_secret(
    app: &App,
    client: &ClientId,
    overlap: SignedDuration,
    anyway: bool,
    by: &Author,
) -> Result<Option<SecretString>, StoreError> {
    let secret = client_secret(app);
    let hash = app.keys.hash(secret.expose_secret());
    let rotation = rotation(app, hash, overlap, by)?;
    let done = app.store.rotate_partner_secret(client, rotation, anyway).await?;
    Ok(done.then_some(secret))
}

pub async fn create_application(
    app: &App,
    partner: &ClientId,
    name: &str,
    pending_event: PendingEvent,
) -> Result<IssuedApplication, StoreError> {
    let (application, issued) = new_application(app, partner, name, pending_event)?;
    app.store.create_application(application).await?;
    Ok(issued)
}

/// How a new webhook secret takes over, counted from now.
#[derive(Clone, Copy, Debug)]
pub struct Takeover {
    /// From then on the signature of spec 5.3 is made with the new secret.
    pub switch_after: SignedDuration,
    /// Until then the Standard Webhooks header carries a signature of the old one too.
    pub overlap: SignedDuration,
}

/// Both secrets sign while the old one lasts, so that a merchant can change over without losing
/// an event.
pub async fn rotate_webhook_secret(
    app: &App,
    application: &ApplicationUuid,
    takeover: Takeover,
    by: &Author,
) -> Result<SecretString, StoreError> {
    if takeover.switch_after > takeover.overlap {
        return Err(StoreError::Refused(
            "the new secret must take over before the old one ends: choose a longer overlap or an \
             earlier switch"
                .into(),
        ));
    }
    let issued = webhook_secret(&app.random);
    let sealed = app.keys.seal(issued.expose_secret(), app.random.bytes());
    let Rotation { secret, previous_until, at, by } = rotation(app, sealed, takeover.overlap, by)?;
    let switch_at = after(at, takeover.switch_after);
    let rotation = WebhookRotation { secret, switch_at, previous_until, at, by };
    app.store.rotate_webhook_secret(application.as_str(), rotation).await?;
    Ok(issued)
}

fn new_application(
    app: &App,
    partner: &ClientId,
    name: &str,
    pending_event: PendingEvent,
) -> Result<(NewApplication, IssuedApplication), StoreError> {
    let name =
        Label::parse(name).map_err(|issue| StoreError::Refused(format!("the name {issue}")))?;
    let uuid = uuid::Builder::from_random_bytes(app.random.bytes()).into_uuid().to_string();
    let uuid = ApplicationUuid::parse(uuid).expect("a UUID is printable ASCII");
    let webhook_secret = webhook_secret(&app.random);
    let application = NewApplication {
        partner: partner.clone(),
        name: name.as_str().to_owned(),
        uuid: uuid.clone(),
        sealed_webhook_secret: app.keys.seal(webhook_secret.expose_secret(), app.random.bytes()),
        pending_event,
        at: app.clock.now(),
    };
    let publishable_key = PublishableKey::new(app.environment, uuid);
    Ok((application, IssuedApplication { publishable_key, webhook_secret }))
}

fn rotation(
    app: &App,
    secret: Vec<u8>,
    overlap: SignedDuration,
    by: &Author,
) -> Result<Rotation, StoreError> {
    if overlap.is_negative() || overlap > OVERLAP_MAX {
        let told = "the old secret may live beside the new one for up to 400 days";
        return Err(StoreError::Refused(told.into()));
    }
    let at = app.clock.now();
    let previous_until = (!overlap.is_zero()).then(|| after(at, overlap));
    Ok(Rotation { secret, previous_until, at, by: by.clone() })
}

/// The prefix lets scanners of leaked secrets recognise it.
fn client_secret(app: &App) -> SecretString {
    format!("svcsec_{}", random_text::<32>(app)).into()
}

/// The form of Standard Webhooks: 32 random bytes in plain base64.
pub fn webhook_secret(random: &Random) -> SecretString {
    format!("whsec_{}", STANDARD.encode(random.bytes::<32>())).into()
}

fn random_text<const N: usize>(app: &App) -> String {
    URL_SAFE_NO_PAD.encode(app.random.bytes::<N>())
}
