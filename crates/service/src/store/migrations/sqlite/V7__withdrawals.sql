-- References of orders that ended, which their rails are to be told: due until the rail has said yes, or
-- cannot be told. Written with the end of the order, so that no crash forgets one; a row stays so that none is
-- told twice.
create table withdrawals (
    attempt_id text not null primary key,
    reference_number text not null,
    since_ms integer not null,
    due_at_ms integer
) strict;
create index withdrawals_due on withdrawals (due_at_ms) where due_at_ms is not null;

-- Windows that nobody will look at again are forgotten.
create index checkout_visits_seen on checkout_visits (seen_at_ms);

-- Attempts whose rail was asked for a day in vain: an operator answers for it.
create index payment_attempts_unanswered on payment_attempts (reference_number)
    where state = 'unknown' and due_at_ms is null;
