-- A version of what the webhooks of a company select and which of them are enabled. Nodes keep that in memory, because every
-- event needs all of it, for as long as the version stays. A company without a row has the version 0.
CREATE TABLE subscription (
    company {int} NOT NULL PRIMARY KEY,
    version {int} NOT NULL
) {clustered};

-- For nodes of the previous release, which don't renew it: the next release drops the triggers.
{only postgres}CREATE FUNCTION webhook_chosen() RETURNS trigger LANGUAGE plpgsql AS
{only postgres}    'BEGIN
{only postgres}        INSERT INTO subscription (company, version)
{only postgres}        VALUES (new.company, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))
{only postgres}        ON CONFLICT (company) DO UPDATE SET version = greatest(excluded.version, subscription.version + 1);
{only postgres}        RETURN NULL;
{only postgres}    END';

--- change
{only postgres}CREATE TRIGGER webhook_added AFTER INSERT ON webhook FOR EACH ROW
{only postgres}    WHEN (coalesce(current_setting('rapport.shift', true), '') = '') EXECUTE FUNCTION webhook_chosen();
{only postgres}CREATE TRIGGER webhook_chosen AFTER UPDATE ON webhook FOR EACH ROW
{only postgres}    WHEN (coalesce(current_setting('rapport.shift', true), '') = ''
{only postgres}        AND (new.events, new.disabled_by_hand, new.auto_disabled_at, new.deleted_at)
{only postgres}        IS DISTINCT FROM (old.events, old.disabled_by_hand, old.auto_disabled_at, old.deleted_at))
{only postgres}    EXECUTE FUNCTION webhook_chosen();
