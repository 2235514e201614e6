-- What PostgreSQL is to believe of our keys, whenever it looks at them. Applied at every migration; changes no row.
--
-- ANALYZE guesses the number of distinct values from the rows of the moment. A table that it saw with one row has as
-- many companies as rows for it, and a table that grew since is then read by company alone, or whole. These numbers
-- take the place of its guess: where they are, plans do not depend on when ANALYZE ran. They need not be exact. They
-- say which of two keys leads to fewer rows; negative ones are a share of the table's rows.

-- All rows may be one company's: no index is good for the company alone.
DO $$
DECLARE
    name TEXT;
BEGIN
    FOR name IN SELECT c.table_name FROM information_schema.columns c JOIN pg_tables t
                ON t.schemaname = c.table_schema AND t.tablename = c.table_name
                WHERE c.table_schema = current_schema() AND c.column_name = 'company'
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN company SET (n_distinct = 1)', name);
    END LOOP;
END $$;

ALTER TABLE account ALTER COLUMN imported_id SET (n_distinct = -1), ALTER COLUMN name_folded SET (n_distinct = -0.5),
    ALTER COLUMN status SET (n_distinct = 7), ALTER COLUMN channel SET (n_distinct = 100);
ALTER TABLE account_word ALTER COLUMN word SET (n_distinct = -0.2), ALTER COLUMN account SET (n_distinct = -0.2);
ALTER TABLE account_field ALTER COLUMN field SET (n_distinct = 20), ALTER COLUMN value SET (n_distinct = -0.1),
    ALTER COLUMN account SET (n_distinct = -0.1);
ALTER TABLE account_seen ALTER COLUMN last_seen_minute SET (n_distinct = 1000);
ALTER TABLE account_address ALTER COLUMN account SET (n_distinct = -0.5);
ALTER TABLE account_site ALTER COLUMN account SET (n_distinct = -0.5);
ALTER TABLE activity ALTER COLUMN account SET (n_distinct = -0.01);
ALTER TABLE activity_count ALTER COLUMN account SET (n_distinct = -0.01), ALTER COLUMN day SET (n_distinct = 400);
ALTER TABLE status_history ALTER COLUMN account SET (n_distinct = -0.5);
ALTER TABLE event ALTER COLUMN account SET (n_distinct = -0.2);
ALTER TABLE delivery ALTER COLUMN webhook SET (n_distinct = 200), ALTER COLUMN event SET (n_distinct = -0.2);
ALTER TABLE attempt ALTER COLUMN delivery SET (n_distinct = -0.5);
ALTER TABLE conversation ALTER COLUMN account SET (n_distinct = -0.5), ALTER COLUMN thread SET (n_distinct = -0.5);
ALTER TABLE message ALTER COLUMN conversation SET (n_distinct = -0.2), ALTER COLUMN account SET (n_distinct = -0.2);
ALTER TABLE mail_reference ALTER COLUMN account SET (n_distinct = -0.2);
ALTER TABLE contact ALTER COLUMN account SET (n_distinct = -0.2);
ALTER TABLE note ALTER COLUMN account SET (n_distinct = -0.2);
ALTER TABLE correction ALTER COLUMN account SET (n_distinct = -0.2), ALTER COLUMN entry SET (n_distinct = -0.8);
ALTER TABLE contact_episode ALTER COLUMN account SET (n_distinct = -0.2);
ALTER TABLE exchange_rate ALTER COLUMN base SET (n_distinct = 2), ALTER COLUMN currency SET (n_distinct = 30);
ALTER TABLE cadence ALTER COLUMN status SET (n_distinct = 3);
ALTER TABLE audit ALTER COLUMN actor_id SET (n_distinct = 50), ALTER COLUMN action SET (n_distinct = 50),
    ALTER COLUMN target SET (n_distinct = -0.1);
ALTER TABLE import_chunk ALTER COLUMN import SET (n_distinct = 200);
ALTER TABLE import_error ALTER COLUMN import SET (n_distinct = 200);
ALTER TABLE import_account ALTER COLUMN import SET (n_distinct = 200), ALTER COLUMN created SET (n_distinct = 2),
    ALTER COLUMN account SET (n_distinct = -0.5);
ALTER TABLE bulk_change ALTER COLUMN bulk SET (n_distinct = 200), ALTER COLUMN account SET (n_distinct = -0.5);
ALTER TABLE import_change ALTER COLUMN import SET (n_distinct = 200), ALTER COLUMN account SET (n_distinct = -0.5);
ALTER TABLE mail ALTER COLUMN content SET (n_distinct = -0.2);
ALTER TABLE promo_code ALTER COLUMN channel SET (n_distinct = -0.2);
ALTER TABLE session ALTER COLUMN person SET (n_distinct = -0.2);

--- change
-- Statistics from before keep the old guess until the next ANALYZE. It reads a sample, however large the table is.
DO $$
DECLARE
    name TEXT;
BEGIN
    FOR name IN SELECT tablename FROM pg_stats WHERE schemaname = current_schema() AND attname = 'company'
                AND n_distinct <> 1
    LOOP
        EXECUTE format('ANALYZE %I', name);
    END LOOP;
END $$;
