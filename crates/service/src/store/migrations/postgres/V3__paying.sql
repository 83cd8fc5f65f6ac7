-- Paying: attempts by rails, what rails say, and the end of orders nobody pays.

-- A cancellation that waits for the attempt in flight, by its reason; a confirmation wins over it.
alter table orders add column cancel_requested text;
-- Since when the order is no longer offered: its deadline has passed, and money on its way has a
-- moment more.
alter table orders add column closing_at_ms bigint;
-- Whose time has come.
create index orders_open on orders (expires_at_ms) where status = 'PEN';

-- One try to collect the money of an order by one method; stored before its rail is called. Made
-- anew in the form paying needs: nothing was tried before this version.
drop table payment_attempts;
create table payment_attempts (
    id text collate "C" not null primary key,
    application_id bigint not null,
    reference_number text collate "C" not null,
    -- The first, the second … of its order.
    number bigint not null,
    method text not null,
    -- The connector that was called.
    rail text not null,
    -- submitted, awaiting_payer, unknown (in flight); issued; held; accepted, rejected, timed_out,
    -- revoked, expired (over).
    state text not null,
    reason text,
    rail_id text,
    -- A phone number is personal data: sealed, with a masked form to show.
    phone_masked text,
    phone_sealed bytea,
    entity text,
    bank_reference text,
    code text,
    link text,
    created_at_ms bigint not null,
    updated_at_ms bigint not null,
    -- Until when the payer can act.
    deadline_at_ms bigint not null,
    -- When somebody must look at it again, whatever happens.
    due_at_ms bigint,
    polls bigint not null default 0
);
create index payment_attempts_by_order on payment_attempts (reference_number);
create index payment_attempts_due on payment_attempts (due_at_ms) where due_at_ms is not null;
create index payment_attempts_by_code on payment_attempts (code) where code is not null;
-- At most one attempt of an order in flight, whatever the payer clicks.
create unique index payment_attempts_in_flight on payment_attempts (reference_number)
    where state in ('submitted', 'awaiting_payer', 'unknown');

-- Bank references, live and dead. A number is not given out again before free_at_ms, long after it
-- died, so that late money cannot pay a stranger's order.
create table bank_references (
    entity text not null,
    number text not null,
    attempt_id text not null,
    free_at_ms bigint,
    primary key (entity, number)
);
create index bank_references_by_attempt on bank_references (attempt_id);

-- Every word of a rail, once: the same id and kind again only counts as a duplicate. Received =
-- applied + exceptions + duplicates.
create table receipts (
    rail text not null,
    rail_payment_id text not null,
    -- payment, refusal, unconfirmed, reversal.
    kind text not null,
    -- What it was about, and what became of it: applied or exception.
    attempt_id text,
    reference_number text,
    amount_centimos bigint not null,
    outcome text not null,
    duplicates bigint not null default 0,
    -- Byte for byte what the rail sent.
    raw bytea not null,
    -- Tells a call that is repeated from a notice that is.
    call_id text not null,
    received_at_ms bigint not null,
    primary key (rail, rail_payment_id, kind)
);

-- Windows of the checkout that an SDK opened, each with a nonce of its own: whether its payer has left
-- is known here and not by the page that opened it, which may be cut off from it.
create table checkout_visits (
    reference_number text collate "C" not null,
    nonce text not null,
    seen_at_ms bigint not null,
    -- Its script has asked for news: only such a page tells us when it is left.
    alive boolean not null default false,
    left_at_ms bigint,
    -- When an order that was left alone is given up.
    due_at_ms bigint,
    primary key (reference_number, nonce)
);
create index checkout_visits_due on checkout_visits (due_at_ms) where due_at_ms is not null;

-- What the simulated rails of a sandbox are going to say, and when.
create table forecasts (
    id bigint generated always as identity primary key,
    due_at_ms bigint not null,
    rail text not null,
    attempt_id text not null,
    reference_number text not null,
    rail_payment_id text not null,
    kind text not null,
    amount_centimos bigint not null,
    reason text
);
create index forecasts_due on forecasts (due_at_ms);

-- When each rail that keeps a queue of payments is next asked for it.
create table rail_queues (
    rail text not null primary key,
    due_at_ms bigint not null
);

-- Rails report centimos: an amount that has some is not the amount of an order.
alter table exceptions rename column amount to amount_centimos;
update exceptions set amount_centimos = amount_centimos * 100;

-- How the sandbox disturbs the webhooks of an application, as JSON.
alter table applications add column chaos text;
