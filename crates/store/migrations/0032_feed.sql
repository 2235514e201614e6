-- The order in which changes were committed, for consumers that follow events and accounts with a cursor. `change.rs` says
-- how it works, and why on PostgreSQL a change has the number of its transaction, shifted.
--
-- `server` is when the server started that `shift` was chosen for. Another server, one that was restored, and one that
-- took over from another count their transactions from elsewhere, and get a higher shift.
{only postgres}CREATE TABLE change_clock (id BIGINT NOT NULL PRIMARY KEY, server BIGINT NOT NULL, shift BIGINT NOT NULL);
{only postgres}INSERT INTO change_clock (id, server, shift)
{only postgres}    SELECT 1, CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT),
{only postgres}    CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) - CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT);
-- Nodes set `rapport.shift` for each of their connections. Those of the previous release don't.
{only postgres}CREATE FUNCTION change_shift() RETURNS BIGINT LANGUAGE sql VOLATILE AS
{only postgres}    'SELECT shift FROM change_clock WHERE id = 1';
{only postgres}CREATE FUNCTION change_number() RETURNS BIGINT LANGUAGE sql VOLATILE AS
{only postgres}    'SELECT coalesce(CAST(nullif(current_setting(''rapport.shift'', true), '''') AS BIGINT), change_shift())
{only postgres}     + CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)';

-- Accounts that were deleted, for as long as deliveries are kept.
CREATE TABLE account_tombstone (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    -- Null if the account had none, and after an erasure.
    imported_id {text},
    deleted_at {int} NOT NULL,
    change {int} NOT NULL DEFAULT 0,
    PRIMARY KEY (company, account)
) {clustered};
{only postgres}ALTER TABLE account_tombstone ALTER COLUMN change SET DEFAULT change_number();
CREATE INDEX account_tombstone_by_change ON account_tombstone (company, change, account);

-- The changes of accounts, in their order: an index of `account.change` that is only added to, because another number
-- in an index of the account itself would make every update write all of its indexes. A row counts as long as its account
-- has that number; retention deletes the others. `at` is when the account was written.
CREATE TABLE account_change (
    company {int} NOT NULL,
    change {int} NOT NULL,
    account {bytes} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (company, change, account)
) {clustered};

-- For nodes of the previous release, which know of none of this: the next release drops the triggers.
{only postgres}CREATE FUNCTION account_changed() RETURNS trigger LANGUAGE plpgsql AS
{only postgres}    'BEGIN new.change := change_number(); RETURN new; END';
{only postgres}CREATE FUNCTION account_logged() RETURNS trigger LANGUAGE plpgsql AS
{only postgres}    'BEGIN
{only postgres}        INSERT INTO account_change (company, change, account, at)
{only postgres}        VALUES (new.company, new.change, new.id, new.updated_at) ON CONFLICT DO NOTHING;
{only postgres}        RETURN NULL;
{only postgres}    END';
{only postgres}CREATE FUNCTION account_deleted() RETURNS trigger LANGUAGE plpgsql AS
{only postgres}    'BEGIN
{only postgres}        IF NOT EXISTS (SELECT 1 FROM company_deletion d WHERE d.company = old.company AND d.began_at IS NOT NULL) THEN
{only postgres}            INSERT INTO account_tombstone (company, account, imported_id, deleted_at)
{only postgres}            VALUES (old.company, old.id, old.imported_id, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))
{only postgres}            ON CONFLICT (company, account) DO NOTHING;
{only postgres}        END IF;
{only postgres}        RETURN NULL;
{only postgres}    END';

--- change
-- Changes from before have the number 0, and are in the order of their ids.
ALTER TABLE account ADD COLUMN change {int} NOT NULL DEFAULT 0;
{only postgres}ALTER TABLE account ALTER COLUMN change SET DEFAULT change_number();
{only postgres}CREATE TRIGGER account_changed BEFORE UPDATE ON account FOR EACH ROW WHEN (new.change = old.change)
{only postgres}    EXECUTE FUNCTION account_changed();
{only postgres}CREATE TRIGGER account_logged AFTER INSERT OR UPDATE ON account FOR EACH ROW
{only postgres}    WHEN (coalesce(current_setting('rapport.shift', true), '') = '') EXECUTE FUNCTION account_logged();
{only postgres}CREATE TRIGGER account_deleted AFTER DELETE ON account FOR EACH ROW EXECUTE FUNCTION account_deleted();

--- change
ALTER TABLE event ADD COLUMN change {int} NOT NULL DEFAULT 0;
{only postgres}ALTER TABLE event ALTER COLUMN change SET DEFAULT change_number();

--- fill account by id, 5000 rows at a time
INSERT INTO account_change (company, change, account, at)
SELECT company, change, id, updated_at FROM account WHERE {rows} ON CONFLICT DO NOTHING;

--- index
CREATE INDEX event_by_change ON event (company, change, id);
