-- Times are unix milliseconds of the service's clock, in both engines: a sandbox may move that
-- clock, so the database's own time would tell another story.

-- Facts about this database as a whole: its environment (a sandbox database is never served as
-- production), the version of the directory, and in the sandbox the generated master key.
create table settings (
    key text not null primary key,
    value text not null
) strict;

-- Who may ask for tokens. `epoch` is inside every token: raising it kills all tokens at once.
create table partners (
    id integer primary key,
    name text not null,
    client_id text not null unique,
    state text not null check (state in ('active', 'disabled')),
    secret_hash blob not null,
    -- While a secret is rotated both are good, until this moment.
    previous_secret_hash blob,
    previous_secret_until_ms integer,
    epoch integer not null,
    created_at_ms integer not null
) strict;

-- What a publishable key names. Webhook secrets must be readable to sign, so they are sealed.
create table applications (
    id integer primary key,
    partner_id integer not null references partners (id),
    uuid text not null unique,
    name text not null,
    webhook_secret blob not null,
    previous_webhook_secret blob,
    previous_webhook_secret_until_ms integer,
    -- When the PEN event goes out: with the first live instrument, at creation, or never.
    pending_event text not null default 'instrument'
        check (pending_event in ('instrument', 'creation', 'never')),
    created_at_ms integer not null
) strict;
create index applications_by_partner on applications (partner_id);

-- The orders. No foreign key: it would cost a look-up per insert, and the application id comes
-- from the directory, never from a caller. The row itself is the record of its creation.
create table orders (
    reference_number text not null primary key,
    application_id integer not null,
    external_transaction_id text not null,
    -- Spelt out: for a list of three SQLite fills a temporary table at every insert.
    status text not null check (status = 'PEN' or status = 'CON' or status = 'CAN'),
    amount integer not null check (amount between 1 and 999999999999),
    quantity integer not null,
    payer_id text not null,
    name text not null,
    -- JSON with sorted keys, so that equal requests are equal texts.
    additional_info text not null,
    request_id text not null,
    created_at_ms integer not null,
    expires_at_ms integer not null,
    settled_at_ms integer,
    -- The idempotency key of spec 2.3, for ever.
    unique (application_id, external_transaction_id)
) strict;

-- One try to collect the money of an order by one method; committed before its rail is called.
create table payment_attempts (
    id text not null primary key,
    application_id integer not null,
    reference_number text not null,
    method text not null,
    state text not null,
    rail_id text,
    created_at_ms integer not null,
    updated_at_ms integer not null
) strict;
create index payment_attempts_by_order on payment_attempts (reference_number);
-- At most one attempt of an order in flight, whatever the payer clicks.
create unique index payment_attempts_in_flight on payment_attempts (reference_number)
    where state in ('created', 'submitted', 'awaiting_payer', 'unknown');

-- Events waiting to be told to merchants; written in the transaction of the change they report.
create table outbox (
    id text not null primary key,
    application_id integer not null,
    reference_number text not null,
    status text not null check (status = 'PEN' or status = 'CON' or status = 'CAN'),
    -- The very bytes of every attempt.
    body blob not null,
    webhook_url text not null,
    state text not null check (state in ('queued', 'delivered', 'superseded', 'exhausted')),
    attempts integer not null default 0,
    next_attempt_at_ms integer not null,
    -- Whoever holds the lease may record the outcome; a late writer with an old token may not.
    lease_token text,
    lease_until_ms integer,
    created_at_ms integer not null
) strict;
create index outbox_due on outbox (next_attempt_at_ms) where state = 'queued';
create index outbox_by_order on outbox (reference_number);

create table delivery_attempts (
    event_id text not null,
    attempt integer not null,
    at_ms integer not null,
    http_status integer,
    latency_ms integer not null,
    error text,
    answer_start blob,
    primary key (event_id, attempt)
) strict;

-- Who changed what, and why; appended in the transaction of the change.
create table audit (
    id integer primary key,
    at_ms integer not null,
    actor text not null,
    action text not null,
    subject text not null,
    before text,
    after text,
    cause text not null,
    request_id text not null
) strict;
create index audit_by_subject on audit (subject);

-- Money that fits no open order (late, wrong amount, second payment, unknown reference): an
-- operator resolves each; none is dropped and none changes a state by itself.
create table exceptions (
    id integer primary key,
    kind text not null,
    application_id integer,
    reference_number text,
    rail text not null,
    rail_payment_id text not null,
    amount integer not null,
    detail text not null,
    created_at_ms integer not null,
    resolved_at_ms integer,
    resolved_by text,
    resolution text,
    unique (rail, rail_payment_id, kind)
) strict;
create index exceptions_open on exceptions (created_at_ms) where resolved_at_ms is null;
