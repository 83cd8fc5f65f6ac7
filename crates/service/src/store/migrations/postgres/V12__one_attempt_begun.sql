-- At most one attempt of an order is under way, whatever the payer clicks. A reference or code that its rail
-- has lost sight of may stand beside it: that is no reason to refuse what the rail says.
drop index payment_attempts_in_flight;
create unique index payment_attempts_in_flight on payment_attempts (reference_number)
    where state in ('submitted', 'awaiting_payer');
