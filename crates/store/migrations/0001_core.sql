-- Companies, people, credentials, accounts, activity and the outbox.
--
-- One text for both engines; the words in braces are the engine's own types and options. Every key
-- begins with the company; companies and people themselves are reference tables.

CREATE TABLE company (
    id {identity},
    slug {text} NOT NULL UNIQUE,
    name {text} NOT NULL,
    cadence_days {int} NOT NULL,
    tracked_stages {text} NOT NULL,
    digest_enabled {int} NOT NULL,
    digest_weekday {text} NOT NULL,
    time_zone {text} NOT NULL,
    default_currency {text} NOT NULL,
    created_at {int} NOT NULL
);

CREATE TABLE person (
    id {bytes} NOT NULL PRIMARY KEY,
    email {text} NOT NULL UNIQUE,
    name {text} NOT NULL,
    password_hash {text} NOT NULL,
    created_at {int} NOT NULL
);

CREATE TABLE member (
    company {int} NOT NULL,
    person {bytes} NOT NULL,
    role {text} NOT NULL,
    created_at {int} NOT NULL,
    deactivated_at {int},
    PRIMARY KEY (company, person)
) {clustered};

CREATE INDEX member_by_person ON member (person, company);

-- API tokens, ingest and inbound keys. Only the hash of the text is kept.
CREATE TABLE credential (
    company {int} NOT NULL,
    hash {bytes} NOT NULL,
    id {bytes} NOT NULL,
    kind {text} NOT NULL,
    name {text} NOT NULL,
    role {text} NOT NULL,
    shown {text} NOT NULL,
    created_at {int} NOT NULL,
    last_used_at {int},
    PRIMARY KEY (company, hash)
) {clustered};

CREATE UNIQUE INDEX credential_by_id ON credential (company, id);

CREATE TABLE channel (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    name {text} NOT NULL,
    name_folded {text} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

CREATE UNIQUE INDEX channel_by_name ON channel (company, name_folded);

CREATE TABLE promo_code (
    company {int} NOT NULL,
    code_folded {text} NOT NULL,
    code {text} NOT NULL,
    channel {bytes} NOT NULL,
    archived_at {int},
    created_at {int} NOT NULL,
    PRIMARY KEY (company, code_folded)
) {clustered};

CREATE INDEX promo_code_by_channel ON promo_code (company, channel, code_folded);

CREATE TABLE account (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    imported_id {text},
    name {text} NOT NULL,
    name_folded {text} NOT NULL,
    status {text} NOT NULL,
    custom_fields {text} NOT NULL,
    value_amount {int},
    value_currency {text},
    channel {bytes},
    promo_code {text},
    acquired_at {int},
    last_contact_at {int},
    cadence_days {int},
    snoozed_until {text},
    tracked_since {int},
    campaign_hold {int} NOT NULL,
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    PRIMARY KEY (company, id)
);

CREATE UNIQUE INDEX account_by_imported_id ON account (company, imported_id);
CREATE INDEX account_by_status ON account (company, status, id);
CREATE INDEX account_by_channel ON account (company, channel, id);
CREATE INDEX account_by_name ON account (company, name_folded, id);

-- The words an account is found by.
CREATE TABLE account_word (
    company {int} NOT NULL,
    word {text} NOT NULL,
    account {bytes} NOT NULL,
    PRIMARY KEY (company, word, account)
) {clustered};

CREATE INDEX account_word_by_account ON account_word (company, account);

-- First and last seen in a narrow row of their own: activity never rewrites the wide account row.
-- The day is indexed instead of the time, so that the index changes once a day, not once an event.
CREATE TABLE account_seen (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    first_seen_at {int} NOT NULL,
    last_seen_at {int} NOT NULL,
    last_seen_day {int} NOT NULL,
    PRIMARY KEY (company, account)
) {hot};

CREATE INDEX account_seen_by_day ON account_seen (company, last_seen_day, account);

-- Events per account, day (in the company's zone) and feature; '' counts what names no feature.
-- Days too old to be shown are folded into day 0.
CREATE TABLE activity_count (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    day {int} NOT NULL,
    feature {text} NOT NULL,
    count {int} NOT NULL,
    last_used_at {int} NOT NULL,
    PRIMARY KEY (company, account, day, feature)
) {hot};

CREATE TABLE activity (
    seq {sequence},
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    occurred_at {int} NOT NULL,
    received_at {int} NOT NULL,
    kind {text} NOT NULL,
    feature {text},
    metadata {text}
);

CREATE INDEX activity_by_account ON activity (company, account, occurred_at);

-- The event_ids taken, so that an event sent again has no effect.
CREATE TABLE event_mark (
    company {int} NOT NULL,
    mark {bytes} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (company, mark)
) {clustered};

CREATE TABLE status_history (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    id {bytes} NOT NULL,
    from_status {text},
    to_status {text} NOT NULL,
    source {text} NOT NULL,
    actor_kind {text} NOT NULL,
    actor_id {bytes},
    actor_name {text},
    note {text},
    at {int} NOT NULL,
    PRIMARY KEY (company, account, id)
) {clustered};

-- The outbox: what happened, with its payload frozen when it happened.
CREATE TABLE event (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    kind {text} NOT NULL,
    account {bytes},
    payload {text},
    created_at {int} NOT NULL,
    PRIMARY KEY (company, id)
);

CREATE TABLE audit (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    actor_kind {text} NOT NULL,
    actor_id {bytes},
    actor_name {text},
    action {text} NOT NULL,
    target {text},
    detail {text} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};
