-- The order of accounts by when they were last seen, at the same cost for any number of them: an index of minutes
-- instead of days, because everyone may be seen on one day. It changes when an account is seen in another minute.

-- For nodes of the previous release, which write only the day and sort by it: the next release drops the
-- trigger, the day and its index.
{only postgres}CREATE FUNCTION account_seen_minute() RETURNS trigger LANGUAGE plpgsql AS
{only postgres}    'BEGIN new.last_seen_minute := new.last_seen_at / 60000000; RETURN new; END';
{only sqlite}DROP INDEX account_seen_by_day;
ALTER TABLE account_seen ADD COLUMN last_seen_minute {int} NOT NULL DEFAULT 0;
{only postgres}CREATE TRIGGER account_seen_minute BEFORE INSERT OR UPDATE ON account_seen FOR EACH ROW
{only postgres}    WHEN (coalesce(current_setting('rapport.shift', true), '') = '') EXECUTE FUNCTION account_seen_minute();

--- fill account_seen by account, 5000 rows at a time
UPDATE account_seen SET last_seen_minute = last_seen_at / 60000000 WHERE {rows};

--- index
CREATE INDEX account_seen_by_minute ON account_seen (company, last_seen_minute, account);
