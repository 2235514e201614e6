-- Webhooks, their deliveries and the attempts of each.

-- Nodes that send: an incarnation has a number and a heartbeat.
CREATE TABLE node (
    id {identity},
    started_at {int} NOT NULL,
    heartbeat_at {int} NOT NULL
);

CREATE TABLE webhook (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    url {text} NOT NULL,
    description {text} NOT NULL,
    events {text} NOT NULL,
    disabled_by_hand {int} NOT NULL,
    auto_disabled_at {int},
    failure_streak {int} NOT NULL,
    last_test_at {int},
    last_test_succeeded {int},
    url_changed_at {int} NOT NULL,
    -- Encrypted under a key that lives outside the database.
    secret {bytes} NOT NULL,
    secret_shown {text} NOT NULL,
    -- Open deliveries created before this were dropped by the operator.
    dropped_before {int} NOT NULL,
    deleted_at {int},
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

-- One event for one webhook. state: 0 open, 1 succeeded, 2 failed. An open delivery is either owned
-- by a node, which holds it in memory, or waits here until next_at.
CREATE TABLE delivery (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    webhook {bytes} NOT NULL,
    event {bytes} NOT NULL,
    kind {text} NOT NULL,
    account {bytes},
    state {int} NOT NULL,
    next_at {int} NOT NULL,
    owner {int},
    attempts {int} NOT NULL,
    scheduled {int} NOT NULL,
    response_code {int},
    error {text},
    created_at {int} NOT NULL,
    finished_at {int},
    PRIMARY KEY (company, id)
) {clustered};

CREATE INDEX delivery_by_webhook ON delivery (company, webhook, id);
CREATE INDEX delivery_by_event ON delivery (company, event);
CREATE INDEX delivery_waiting ON delivery (company, webhook, next_at, id) WHERE state = 0 AND owner IS NULL;
CREATE INDEX delivery_owned ON delivery (owner, company, id) WHERE state = 0 AND owner IS NOT NULL;
CREATE INDEX delivery_failed ON delivery (company, id) WHERE state = 2;

CREATE TABLE attempt (
    company {int} NOT NULL,
    delivery {bytes} NOT NULL,
    number {int} NOT NULL,
    started_at {int} NOT NULL,
    succeeded {int} NOT NULL,
    manual {int} NOT NULL,
    response_code {int},
    failure {text},
    error {text},
    dns_us {int},
    connect_us {int},
    tls_us {int},
    first_byte_us {int},
    total_us {int} NOT NULL,
    address {text},
    excerpt {bytes},
    excerpt_cut {int} NOT NULL,
    PRIMARY KEY (company, delivery, number)
) {clustered};

-- Attempts that an operator asked for and that are not made yet.
CREATE TABLE manual_attempt (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    delivery {bytes} NOT NULL,
    webhook {bytes} NOT NULL,
    redelivery {bytes},
    owner {int},
    requested_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

-- Redeliveries of many: walked in steps from the newest to the oldest that match.
CREATE TABLE redelivery (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    filter {text} NOT NULL,
    total {int} NOT NULL,
    queued {int} NOT NULL,
    skipped {int} NOT NULL,
    walked_to {bytes} NOT NULL,
    cancelled_at {int},
    finished_at {int},
    created_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

--- index
CREATE INDEX event_by_account ON event (company, account, id);
