-- The index of merchants' ids was the largest of all and is touched at a random page for every order:
-- 42 characters each, as a rule. Ten bytes of their SHA-256 do as well and are a third of it; the id itself
-- stays in its row. The table is made anew because the old index is part of it.
create table orders_anew (
    reference_number text not null primary key,
    application_id integer not null,
    external_transaction_id text not null,
    -- The first ten bytes of the SHA-256 of the id.
    id_hash blob not null,
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
    -- A cancellation that waits for the attempt in flight, by its reason; a confirmation wins over it.
    cancel_requested text,
    -- Since when the order is no longer offered: its deadline has passed, and money on its way has a
    -- moment more.
    closing_at_ms integer
) strict;
insert into orders_anew (reference_number, application_id, external_transaction_id, id_hash, status,
        amount, quantity, payer_id, name, additional_info, request_id, created_at_ms, expires_at_ms,
        settled_at_ms, cancel_requested, closing_at_ms)
    select reference_number, application_id, external_transaction_id,
        id_hash(external_transaction_id), status, amount, quantity, payer_id, name, additional_info,
        request_id, created_at_ms, expires_at_ms, settled_at_ms, cancel_requested, closing_at_ms
    from orders order by rowid;
drop table orders;
alter table orders_anew rename to orders;
-- The idempotency key of spec 2.3, for ever. Two ids of one application that share ten bytes: not among
-- the orders of this world.
create unique index orders_by_external_id on orders (id_hash, application_id);
-- Whose time has come.
create index orders_open on orders (expires_at_ms) where status = 'PEN';
-- An application's orders, newest first.
create index orders_by_application on orders (application_id, reference_number);
