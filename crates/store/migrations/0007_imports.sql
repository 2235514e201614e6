-- Imports of CSV files: how far each has come, the file itself, what it could not take and what it changed.

CREATE TABLE import (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    filename {text} NOT NULL,
    state {text} NOT NULL,
    -- 1 while somebody has to take it further.
    active {int} NOT NULL,
    bytes {int} NOT NULL,
    charset {text} NOT NULL,
    delimiter {text} NOT NULL,
    -- Names and samples, as JSON.
    columns {text} NOT NULL,
    -- Targets in the order of the columns, as JSON.
    mapping {text} NOT NULL,
    remembered {int} NOT NULL,
    mode {text} NOT NULL,
    data_offset {int} NOT NULL,
    data_line {int} NOT NULL,
    -- Where the next row is: written with the rows before it.
    at_offset {int} NOT NULL,
    at_line {int} NOT NULL,
    rows_done {int} NOT NULL,
    rows_total {int},
    created {int} NOT NULL,
    updated {int} NOT NULL,
    unchanged {int} NOT NULL,
    skipped {int} NOT NULL,
    failed {int} NOT NULL,
    codes_unmatched {int} NOT NULL,
    accounts {int} NOT NULL,
    preview {text},
    undo_after {bytes},
    undo_done {int} NOT NULL,
    undo_restored {int} NOT NULL,
    undo_removed {int} NOT NULL,
    undo_kept {int} NOT NULL,
    actor_kind {text} NOT NULL,
    actor_id {bytes},
    actor_name {text},
    -- Which process takes it further, and until when it is believed to live.
    runner {int},
    lease_until {int},
    created_at {int} NOT NULL,
    started_at {int},
    finished_at {int},
    undone_at {int},
    -- Removed by a person: nothing shows it any more, and its data goes in steps.
    deleted_at {int},
    PRIMARY KEY (company, id)
) {clustered};

CREATE INDEX import_active ON import (company, id) WHERE active = 1;

-- The file, in pieces of one size, so that any node can read it and a restart loses nothing.
CREATE TABLE import_chunk (
    company {int} NOT NULL,
    import {bytes} NOT NULL,
    number {int} NOT NULL,
    bytes {bytes} NOT NULL,
    PRIMARY KEY (company, import, number)
);

-- Rows that could not be taken, with their cells as JSON.
CREATE TABLE import_error (
    company {int} NOT NULL,
    import {bytes} NOT NULL,
    line {int} NOT NULL,
    cells {text} NOT NULL,
    reason {text} NOT NULL,
    PRIMARY KEY (company, import, line)
) {clustered};

-- Accounts that an import created or changed: what it takes to undo it.
CREATE TABLE import_change (
    company {int} NOT NULL,
    import {bytes} NOT NULL,
    account {bytes} NOT NULL,
    created {int} NOT NULL,
    -- The account's updated_at as the import left it.
    mark {int} NOT NULL,
    -- Fields before and after, as JSON.
    differences {text} NOT NULL,
    PRIMARY KEY (company, import, account)
) {clustered};

CREATE INDEX import_change_by_account ON import_change (company, account);

-- How files with these columns were mapped the last time.
CREATE TABLE import_mapping (
    company {int} NOT NULL,
    -- The SHA-256 of the columns' names.
    columns_mark {bytes} NOT NULL,
    -- Target by column, as JSON.
    mapping {text} NOT NULL,
    used_at {int} NOT NULL,
    PRIMARY KEY (company, columns_mark)
) {clustered};
