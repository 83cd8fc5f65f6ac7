-- Room on each page for the version of an event that a claim writes: then no index changes with it.
alter table outbox set (fillfactor = 50);
