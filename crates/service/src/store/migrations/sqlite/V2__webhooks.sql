-- Delivering the events of the outbox.

-- A lane is an application and the scheme, host and port its events go to. Each has its own pace,
-- so that a merchant that hangs holds up nobody else: events are claimed lane by lane.
alter table outbox add column origin text not null default '';
-- Failed attempts since the event was queued: the place in the schedule. Unlike attempts, it
-- begins anew when an event is replayed.
alter table outbox add column failures integer not null default 0;
-- Since when it is tried: the horizon of the schedule counts from here.
alter table outbox add column queued_at_ms integer not null default 0;
update outbox set queued_at_ms = created_at_ms, origin = substr(webhook_url, 1,
    instr(webhook_url, '://') + 1 + instr(substr(webhook_url, instr(webhook_url, '://') + 3) || '/', '/'));

-- A lease is a matter of the real world (a request is under way), not of the service's clock,
-- which a sandbox may move: lease_until_ms is the database's own time.
drop index outbox_due;
-- The creation time rides along so that the age of the queue is read from the index alone.
create index outbox_lanes on outbox (application_id, origin, next_attempt_at_ms, created_at_ms)
    where state = 'queued';
-- What partners pull, page by page.
create index outbox_by_application on outbox (application_id, id);

-- Nothing was delivered before this version: the table is made anew, in the order it is read.
drop table delivery_attempts;
create table delivery_attempts (
    event_id text not null,
    attempt integer not null,
    at_ms integer not null,
    http_status integer,
    latency_ms integer not null,
    error text,
    answer_start blob,
    primary key (event_id, attempt)
) strict, without rowid;

-- While a webhook secret is replaced, the signature of spec 5.3 (there is room for one only) is
-- made with the previous secret until this moment.
alter table applications add column webhook_secret_switch_at_ms integer;
