-- Sample data, which one click removes again.

--- change
-- Readers that follow the accounts never heard of a sample account, so they aren't told that it is deleted.
{only postgres}CREATE OR REPLACE FUNCTION account_deleted() RETURNS trigger LANGUAGE plpgsql AS
{only postgres}    'BEGIN
{only postgres}        IF old.sample = 0 AND NOT EXISTS (SELECT 1 FROM company_deletion d WHERE d.company = old.company
{only postgres}                                          AND d.began_at IS NOT NULL) THEN
{only postgres}            INSERT INTO account_tombstone (company, account, imported_id, deleted_at)
{only postgres}            VALUES (old.company, old.id, old.imported_id, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))
{only postgres}            ON CONFLICT (company, account) DO NOTHING;
{only postgres}        END IF;
{only postgres}        RETURN NULL;
{only postgres}    END';
-- 1 for an account of the sample data.
ALTER TABLE account ADD COLUMN sample {int} NOT NULL DEFAULT 0;

--- change
ALTER TABLE channel ADD COLUMN sample {int} NOT NULL DEFAULT 0;

--- change
-- When sample data was added, while it is there.
ALTER TABLE company ADD COLUMN sample_since {int};

--- index
CREATE INDEX account_sample ON account (company, id) WHERE sample = 1;
