-- What was said: conversations, their messages, and contact that left no message.

CREATE TABLE conversation (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    account {bytes} NOT NULL,
    subject {text},
    channel {text} NOT NULL,
    -- What mails without references find their conversation by: a mark of the subject without its
    -- "Re:". Conversations by other ways than mail have none.
    thread {bytes},
    message_count {int} NOT NULL,
    -- Of its latest message, or its creation where it has none.
    last_message_at {int} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

CREATE INDEX conversation_by_account ON conversation (company, account, last_message_at, id);
CREATE INDEX conversation_by_thread ON conversation (company, account, thread, last_message_at, id);

CREATE TABLE message (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    conversation {bytes} NOT NULL,
    account {bytes} NOT NULL,
    direction {text} NOT NULL,
    channel {text} NOT NULL,
    subject {text},
    body {text} NOT NULL,
    -- Its size, so that a page of long messages can end early.
    body_bytes {int} NOT NULL,
    -- 1 where the mail said more than is kept.
    body_truncated {int} NOT NULL,
    author_kind {text} NOT NULL,
    author_id {bytes},
    author_name {text},
    -- What a mail says of itself: who sent it, what was attached (names and sizes, as JSON), and whether
    -- a machine answered in somebody's place.
    sender_address {text},
    sender_name {text},
    attachments {text},
    automatic {int} NOT NULL,
    occurred_at {int} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

CREATE INDEX message_by_conversation ON message (company, conversation, occurred_at, id);
CREATE INDEX message_by_account ON message (company, account, occurred_at, id);

-- The Message-IDs that mails were logged under: none is logged twice, and answers find their conversation.
CREATE TABLE mail_reference (
    company {int} NOT NULL,
    -- The SHA-256 of the Message-ID; of a copy on a further account, of both together.
    mark {bytes} NOT NULL,
    message {bytes} NOT NULL,
    conversation {bytes} NOT NULL,
    account {bytes} NOT NULL,
    PRIMARY KEY (company, mark)
) {clustered};

CREATE INDEX mail_reference_by_account ON mail_reference (company, account);

-- The mail addresses an account is known by, folded.
CREATE TABLE account_address (
    company {int} NOT NULL,
    address {text} NOT NULL,
    account {bytes} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, address)
) {clustered};

CREATE INDEX account_address_by_account ON account_address (company, account, address);

-- The site an account was looked up by: none is made twice.
CREATE TABLE account_site (
    company {int} NOT NULL,
    site {text} NOT NULL,
    account {bytes} NOT NULL,
    PRIMARY KEY (company, site)
) {clustered};

CREATE INDEX account_site_by_account ON account_site (company, account);

-- Contact recorded on an account: a call, a meeting, a mail sent elsewhere.
CREATE TABLE contact (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    id {bytes} NOT NULL,
    kind {text} NOT NULL,
    note {text},
    actor_kind {text} NOT NULL,
    actor_id {bytes},
    actor_name {text},
    occurred_at {int} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, account, id)
) {clustered};

CREATE INDEX contact_by_time ON contact (company, account, occurred_at, id);
