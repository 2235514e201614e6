-- The last activity events that broke a rule, for people who look why a figure is missing. A bounded few per company,
-- newest kept.
CREATE TABLE ingest_reject (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    at {int} NOT NULL,
    -- Its place in the batch.
    place {int} NOT NULL,
    -- What it named its account by, and its kind, as sent: cut, and null where it had none.
    account {text},
    kind {text},
    code {text} NOT NULL,
    field {text} NOT NULL,
    detail {text} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};
