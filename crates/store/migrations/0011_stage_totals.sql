-- What the dashboard and the board show at a glance: totals per stage, activity per day, moves by time.

-- Accounts and value per stage and currency, counted now and then in the background; '' is the currency of accounts
-- without a value. Only companies with a stage too large to be counted while a page is read have rows here.
CREATE TABLE stage_total (
    company {int} NOT NULL,
    status {text} NOT NULL,
    currency {text} NOT NULL,
    accounts {int} NOT NULL,
    amount {int} NOT NULL,
    counted_at {int} NOT NULL,
    PRIMARY KEY (company, status, currency)
) {clustered};

-- Activity of all accounts per day (in the company's zone). Writers spread over a few shards, so that they rarely
-- wait for each other.
CREATE TABLE activity_day (
    company {int} NOT NULL,
    day {int} NOT NULL,
    shard {int} NOT NULL,
    count {int} NOT NULL,
    PRIMARY KEY (company, day, shard)
) {hot};

--- fill activity_count by account, 20000 rows at a time
INSERT INTO activity_day (company, day, shard, count)
SELECT company, day, 0, CAST(sum(count) AS BIGINT) FROM activity_count WHERE {rows} AND day <> 0 GROUP BY company, day
ON CONFLICT (company, day, shard) DO UPDATE SET count = activity_day.count + excluded.count;

--- index
-- A stage is added up from its index alone, whatever else an account's row holds.
DROP INDEX account_by_status;
CREATE INDEX account_by_status ON account (company, status, id, value_currency, value_amount);

-- The moves of all accounts by time. Partial: the first entry of an account is no move.
CREATE INDEX status_history_moves ON status_history (company, id) WHERE from_status IS NOT NULL;
