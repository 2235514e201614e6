-- With the column that these indexes are limited by, SQLite answers counts and pages of clients from the index alone:
-- without it, every row of the table is looked up to see what the index says already.

--- index
DROP INDEX cadence_by_time;
CREATE INDEX cadence_by_time ON cadence (company, status, own, at, account, snoozed_until) WHERE snoozed_until IS NULL;
DROP INDEX cadence_snoozed_by_time;
CREATE INDEX cadence_snoozed_by_time ON cadence (company, status, own, at, account, snoozed_until)
    WHERE snoozed_until IS NOT NULL;
