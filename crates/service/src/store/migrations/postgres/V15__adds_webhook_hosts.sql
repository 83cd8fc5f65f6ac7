-- Where an application's webhooks may go, separated by spaces; null: to any public host.
alter table applications add column webhook_hosts text;
