-- Requests with an Idempotency-Key whose action was committed, and their responses: repeating one does nothing twice.
CREATE TABLE kept_response (
    company {int} NOT NULL,
    -- Derived from the credential and the key.
    id {bytes} NOT NULL,
    -- The hash of the request.
    request {bytes} NOT NULL,
    status {int} NOT NULL,
    -- NULL if it contains a secret or was too large to keep.
    body {text},
    -- The body, encrypted, if it contains a secret.
    secret {bytes},
    at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

CREATE INDEX kept_response_by_time ON kept_response (company, at);
