-- Orders of the account list that had no index, and the undo of changes to many accounts.

--- change
-- What a change of many accounts did to each of them. Kept for a day, so that it can be undone.
CREATE TABLE bulk_change (
    company {int} NOT NULL,
    bulk {bytes} NOT NULL,
    account {bytes} NOT NULL,
    -- Fields before and after, as JSON.
    differences {text} NOT NULL,
    PRIMARY KEY (company, bulk, account)
) {clustered};

CREATE INDEX bulk_change_by_account ON bulk_change (company, account, bulk);

--- index
-- Those of `account` have only the accounts with a value in the column, so the others pay nothing when they are written.
CREATE INDEX account_by_value ON account (company, value_currency, value_amount, id) WHERE value_currency IS NOT NULL;
CREATE INDEX account_by_promo_code ON account (company, promo_code, id) WHERE promo_code IS NOT NULL;
CREATE INDEX account_by_acquired ON account (company, acquired_at, id) WHERE acquired_at IS NOT NULL;

--- index
-- Written when an account is seen for the first time, and when an earlier event arrives later.
CREATE INDEX account_seen_by_first ON account_seen (company, first_seen_at, account);
