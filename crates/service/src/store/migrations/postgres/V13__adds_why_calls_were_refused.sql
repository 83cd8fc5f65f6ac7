-- Which fields were wrong, and how; the error alone sends people to guess.
alter table request_log add column details text;
