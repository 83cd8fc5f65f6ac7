-- The index of merchants' ids was a part of the table, so each order touched a page of it at random. Now it
-- is a table of its own, which the service fills in lots, in the order of the hashes: a page takes many at
-- once. What is not in it yet, the service knows in memory, and after a start from the orders themselves.

-- The idempotency key of spec 2.3, for ever. Two ids of one application that share ten bytes: not among
-- the orders of this world.
create table order_ids (
    -- The first ten bytes of the SHA-256 of the merchant's id.
    id_hash blob not null,
    application_id integer not null,
    order_id integer not null,
    primary key (id_hash, application_id)
) strict, without rowid;
-- How far it is filled: it has every order up to until, and of those up to began_with each whose key is not
-- above at. The service goes through the hashes from the lowest to the highest, again and again.
create table order_ids_filled (
    only integer primary key check (only = 1),
    until integer not null,
    began_with integer not null,
    at_hash blob,
    at_application integer
) strict;

-- Orders have a number of their own for it: a rowid that nobody declared may change with a vacuum.
create table orders_anew (
    id integer primary key,
    reference_number text not null unique,
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
    -- A cancellation that waits for the attempt in flight, by its reason; a confirmation wins over it.
    cancel_requested text,
    -- Since when the order is no longer offered: its deadline has passed, and money on its way has a
    -- moment more.
    closing_at_ms integer
) strict;
insert into orders_anew (id, reference_number, application_id, external_transaction_id, status, amount,
        quantity, payer_id, name, additional_info, request_id, created_at_ms, expires_at_ms,
        settled_at_ms, cancel_requested, closing_at_ms)
    select rowid, reference_number, application_id, external_transaction_id, status, amount, quantity,
        payer_id, name, additional_info, request_id, created_at_ms, expires_at_ms, settled_at_ms,
        cancel_requested, closing_at_ms
    from orders order by rowid;

insert into order_ids (id_hash, application_id, order_id)
    select id_hash, application_id, rowid from orders order by id_hash;
insert into order_ids_filled (only, until, began_with)
    select 1, coalesce(max(id), 0), coalesce(max(id), 0) from orders_anew;

drop table orders;
alter table orders_anew rename to orders;
-- Whose time has come.
create index orders_open on orders (expires_at_ms) where status = 'PEN';
-- An application's orders, newest first.
create index orders_by_application on orders (application_id, reference_number);
