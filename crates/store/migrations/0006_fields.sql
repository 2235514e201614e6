-- Custom fields as accounts are found by them, and campaigns.

-- One row for each text that a field of an account is found by; '' where the value has none of its own.
CREATE TABLE account_field (
    company {int} NOT NULL,
    field {text} NOT NULL,
    value {text} NOT NULL,
    account {bytes} NOT NULL,
    PRIMARY KEY (company, field, value, account)
) {clustered};

CREATE INDEX account_field_by_account ON account_field (company, account, field);

-- Companies whose older accounts are not all in account_field yet, and how far the walk has come.
CREATE TABLE field_fill (
    company {int} NOT NULL PRIMARY KEY,
    walked_to {bytes}
);

INSERT INTO field_fill (company) SELECT id FROM company;

CREATE TABLE campaign (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    name {text} NOT NULL,
    name_folded {text} NOT NULL,
    goal {text} NOT NULL,
    include_trials {int} NOT NULL,
    filters {text} NOT NULL,
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

CREATE UNIQUE INDEX campaign_by_name ON campaign (company, name_folded);

--- index
-- Partial: an account that was never contacted, or is not held, costs nothing here when it is written.
CREATE INDEX account_by_contact ON account (company, last_contact_at, id) WHERE last_contact_at IS NOT NULL;
CREATE INDEX account_on_hold ON account (company, id) WHERE campaign_hold = 1;
