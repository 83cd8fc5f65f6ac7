-- What nobody took in 35 days, of one application: the console of a partner with millions of events
-- that were taken finds the few.
create index outbox_exhausted_of on outbox (application_id, id) where state = 'exhausted';
