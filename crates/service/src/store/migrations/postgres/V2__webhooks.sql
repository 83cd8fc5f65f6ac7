-- Delivering the events of the outbox: its tables are made anew, in the form delivery needs.
-- Nothing was delivered before this version.
drop table delivery_attempts;
alter table outbox rename to outbox_v1;

-- Events waiting to be told to merchants; written in the transaction of the change they report.
create table outbox (
    id text collate "C" not null primary key,
    application_id bigint not null,
    reference_number text collate "C" not null,
    status text not null check (status = 'PEN' or status = 'CON' or status = 'CAN'),
    -- The very bytes of every attempt.
    body bytea not null,
    webhook_url text not null,
    -- A lane is an application and the scheme, host and port its events go to. Each has its own
    -- pace, so that a merchant that hangs holds up nobody else: events are claimed lane by lane.
    origin text collate "C" not null,
    -- Spelt out: for a list SQLite fills a temporary table at every change of a row.
    state text not null check (state = 'queued' or state = 'delivered' or state = 'superseded'
        or state = 'exhausted'),
    -- No newer event of its order exists. Only such a one may be sent again.
    latest boolean not null default true,
    attempts bigint not null default 0,
    -- Failed attempts since the event was queued: the place in the schedule. Unlike attempts, it
    -- begins anew when an event is replayed.
    failures bigint not null default 0,
    -- Since when it is tried: the horizon of the schedule counts from here.
    queued_at_ms bigint not null,
    next_attempt_at_ms bigint not null,
    -- Whoever holds the lease may record the outcome; a late writer with an old token may not. A
    -- lease is a matter of the real world (a request is under way), not of the service's clock,
    -- which a sandbox may move: lease_until_ms is the database's own time.
    lease_token text,
    lease_until_ms bigint,
    created_at_ms bigint not null
);
insert into outbox (id, application_id, reference_number, status, body, webhook_url, origin, state,
    attempts, queued_at_ms, next_attempt_at_ms, created_at_ms)
select id, application_id, reference_number, status, body, webhook_url,
    substring(webhook_url from '^[a-z]+://[^/]*'),
    state, attempts, created_at_ms, next_attempt_at_ms, created_at_ms
from outbox_v1;
drop table outbox_v1;

-- The creation time rides along so that the age of the queue is read from the index alone.
create index outbox_lanes on outbox (application_id, origin, next_attempt_at_ms, created_at_ms)
    where state = 'queued';
create index outbox_by_order on outbox (reference_number);
-- What partners pull, page by page.
create index outbox_by_application on outbox (application_id, id);

-- Every attempt to deliver an event, in the order it is read.
create table delivery_attempts (
    event_id text collate "C" not null,
    attempt bigint not null,
    at_ms bigint not null,
    http_status bigint,
    latency_ms bigint not null,
    error text,
    answer_start bytea,
    primary key (event_id, attempt)
);

-- While a webhook secret is replaced, the signature of spec 5.3 (there is room for one only) is
-- made with the previous secret until this moment.
alter table applications add column webhook_secret_switch_at_ms bigint;
