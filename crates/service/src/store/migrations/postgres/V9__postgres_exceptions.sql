-- Each notice that fits no order has an entry of its own: a payment and its reversal have the same id of
-- their rail, and may be of the same kind of exception.
alter table exceptions add column notice text;
update exceptions set notice = case kind when 'reversal' then 'reversal'
    -- What it was about begins the detail.
    when 'unmatched' then split_part(detail, ' ', 1)
    else 'payment' end;
alter table exceptions alter column notice set not null;
alter table exceptions drop constraint exceptions_rail_rail_payment_id_kind_key;
alter table exceptions add unique (rail, rail_payment_id, notice);
