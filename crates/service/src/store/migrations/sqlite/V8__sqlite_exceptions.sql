-- Each notice that fits no order has an entry of its own: a payment and its reversal have the same id of
-- their rail, and may be of the same kind of exception.
alter table exceptions rename to exceptions_v1;
create table exceptions (
    id integer primary key,
    kind text not null,
    -- Of the notice: payment, refusal, unconfirmed, reversal.
    notice text not null,
    application_id integer,
    reference_number text,
    rail text not null,
    rail_payment_id text not null,
    amount_centimos integer not null,
    detail text not null,
    created_at_ms integer not null,
    resolved_at_ms integer,
    resolved_by text,
    resolution text,
    unique (rail, rail_payment_id, notice)
) strict;
insert into exceptions (id, kind, notice, application_id, reference_number, rail, rail_payment_id,
    amount_centimos, detail, created_at_ms, resolved_at_ms, resolved_by, resolution)
select id, kind,
    case kind when 'reversal' then 'reversal'
        -- What it was about begins the detail.
        when 'unmatched' then substr(detail, 1, instr(detail, ' ') - 1)
        else 'payment' end,
    application_id, reference_number, rail, rail_payment_id, amount_centimos, detail, created_at_ms,
    resolved_at_ms, resolved_by, resolution
from exceptions_v1;
drop table exceptions_v1;
create index exceptions_open on exceptions (created_at_ms) where resolved_at_ms is null;
create index exceptions_by_order on exceptions (reference_number);
