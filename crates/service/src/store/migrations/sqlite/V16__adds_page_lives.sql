-- The life of a window's page that was heard of last, if it was named: from its loading to its leaving. What it
-- had on its way as it was left does not bring it back, and what it said as it went is not of the page that
-- came after it.
alter table checkout_visits add column page_life text;
