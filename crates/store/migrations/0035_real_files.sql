-- Imports of files as people write them: formats, words for stages, reasons of failures, and each import's accounts.

--- change
-- The accounts that an import created or changed, kept as long as the import is. `import_change`, which an undo needs,
-- is not.
CREATE TABLE import_account (
    company {int} NOT NULL,
    import {bytes} NOT NULL,
    created {int} NOT NULL,
    account {bytes} NOT NULL,
    PRIMARY KEY (company, import, created, account)
) {clustered};

CREATE INDEX import_account_by_account ON import_account (company, account, import);

-- The stages that a company chose for words in its files.
CREATE TABLE import_word (
    company {int} NOT NULL,
    -- In lower case, with single spaces.
    word {text} NOT NULL,
    -- A status, or `keep`.
    meaning {text} NOT NULL,
    used_at {int} NOT NULL,
    PRIMARY KEY (company, word)
) {clustered};

--- change
-- The format of each column as JSON, empty without any.
ALTER TABLE import ADD COLUMN formats {text} NOT NULL DEFAULT '';
-- The meaning of each word that was chosen as JSON, empty without any.
ALTER TABLE import ADD COLUMN words {text} NOT NULL DEFAULT '';
-- Failed rows by reason and unmatched promo codes as JSON, empty without any.
ALTER TABLE import ADD COLUMN findings {text} NOT NULL DEFAULT '';

--- fill import_change by import, 5000 rows at a time
INSERT INTO import_account (company, import, created, account)
SELECT company, import, created, account FROM import_change WHERE {rows}
ON CONFLICT (company, import, created, account) DO NOTHING;
