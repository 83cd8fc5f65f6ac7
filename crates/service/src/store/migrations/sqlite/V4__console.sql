-- The console: people who sign in, what callers asked, figures by the hour, and a sealed history.

-- Operators of the service, and users of partners.
create table people (
    id integer primary key,
    -- What they sign in with, in lower case.
    login text not null unique,
    -- Whose orders they see; null for operators, who see all.
    partner_id integer,
    role text not null,
    -- Argon2id with its parameters; null until their invitation was used.
    password_hash text,
    -- The seed of one-time codes, sealed; null while they are off.
    totp_sealed blob,
    -- The step of the last code that was used: none works twice.
    totp_step integer not null default 0,
    created_at_ms integer not null,
    disabled_at_ms integer
) strict;

-- Browsers that are signed in. Of what their cookie holds only a hash is kept.
create table sessions (
    token_hash blob not null primary key,
    person_id integer not null,
    created_at_ms integer not null,
    seen_at_ms integer not null,
    expires_at_ms integer not null
) strict;
create index sessions_by_person on sessions (person_id);

-- Links that let somebody in: "welcome" once, to choose a password; "entry" until it expires, in a
-- sandbox only.
create table invitations (
    token_hash blob not null primary key,
    person_id integer not null,
    kind text not null,
    expires_at_ms integer not null
) strict;

-- The history is append-only. A seal covers the rows after the one before up to last_id; its mac is
-- made of theirs and of the seal before, with a key that the database does not hold.
create table audit_seals (
    id integer not null primary key,
    last_id integer not null,
    covered integer not null,
    mac blob not null,
    at_ms integer not null
) strict;

-- What partners asked and what they were told: every refusal, and of the rest as much as is written
-- without holding anybody up.
create table request_log (
    request_id text not null primary key,
    at_ms integer not null,
    partner_id integer,
    method text not null,
    path text not null,
    status integer not null,
    error text,
    took_us integer not null,
    -- As it came, without what is secret or personal.
    body text not null
) strict;
create index request_log_by_partner on request_log (partner_id, at_ms);
create index request_log_by_time on request_log (at_ms);

-- When a partner last asked for a token.
create table key_uses (
    partner_id integer not null primary key,
    at_ms integer not null
) strict;

-- What happened in an hour, counted from the other tables now and then: pages with figures need not
-- read millions of rows. An event's attempts count in the hour of the event.
create table hour_figures (
    hour_ms integer not null,
    application_id integer not null,
    orders integer not null,
    amount integer not null,
    confirmed integer not null,
    confirmed_amount integer not null,
    cancelled integer not null,
    attempts integer not null,
    failures integer not null,
    -- Events that were tried at least once, and how long they waited for that.
    tried integer not null,
    lag_ms_sum integer not null,
    lag_ms_max integer not null,
    primary key (hour_ms, application_id)
) strict;

-- An application's orders, newest first.
create index orders_by_application on orders (application_id, reference_number);
-- What a payer reads off a slip.
create index bank_references_by_number on bank_references (number);
-- What nobody took in 35 days.
create index outbox_exhausted on outbox (id) where state = 'exhausted';
create index exceptions_by_order on exceptions (reference_number);
