-- Which life of a window's page said that it was left: what that page had on its way does not bring it back.
alter table checkout_visits add column left_life text;
