-- Notes, which aren't contact, and corrections of contacts, messages and notes.

CREATE TABLE note (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    id {bytes} NOT NULL,
    text {text} NOT NULL,
    pinned {int} NOT NULL,
    author_kind {text} NOT NULL,
    author_id {bytes},
    author_name {text},
    created_at {int} NOT NULL,
    PRIMARY KEY (company, account, id)
) {clustered};

CREATE INDEX note_pinned ON note (company, account, id) WHERE pinned = 1;

-- A deleted entry is taken out of its table and kept here, until it can't be restored any more.
CREATE TABLE correction (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    id {bytes} NOT NULL,
    -- What was corrected: 'contact', 'message' or 'note', and its id.
    entry_kind {text} NOT NULL,
    entry {bytes} NOT NULL,
    -- 'edited' or 'deleted'.
    act {text} NOT NULL,
    -- Who logged the entry.
    author_kind {text} NOT NULL,
    author_id {bytes},
    author_name {text},
    -- Who corrected it.
    actor_kind {text} NOT NULL,
    actor_id {bytes},
    actor_name {text},
    -- The members that were edited, joined by commas.
    fields {text} NOT NULL,
    -- As JSON: the edited members before and after, or everything that was deleted. NULL once `kept` is 0.
    was {text},
    became {text},
    kept {int} NOT NULL,
    at {int} NOT NULL,
    undone_at {int},
    undone_kind {text},
    undone_id {bytes},
    undone_name {text},
    PRIMARY KEY (company, account, id)
) {clustered};

CREATE INDEX correction_by_entry ON correction (company, account, entry, id);
CREATE INDEX correction_kept ON correction (company, id, account) WHERE kept = 1;
