-- What a delivered event and a settled order leave behind in the indexes of those that wait is walked over by every
-- look until it is swept out. To wait until it is a fifth of the table, as is usual, is too long.
alter table outbox set (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 50000, vacuum_index_cleanup = on
);
alter table orders set (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 50000, vacuum_index_cleanup = on
);
