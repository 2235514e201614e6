-- Mail and what asks for it: the weekly digest, invitations, password resets. And where a change came from.

-- What mails say. Several mails may say the same: a digest is kept once, not once per member.
CREATE TABLE mail_content (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    subject {text} NOT NULL,
    plain {text} NOT NULL,
    html {text} NOT NULL,
    -- The secret of the link in it, encrypted under a key that lives outside the database. It is put in its place
    -- when the mail is sent, and gone once the mail is sent or given up.
    secret {bytes},
    PRIMARY KEY (company, id)
);

-- state: 0 waiting, 1 sent, 2 failed. A waiting mail is due at next_at; taking it moves next_at to the end of a
-- lease, so that nobody else takes it meanwhile and somebody does if the taker dies.
CREATE TABLE mail (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    kind {text} NOT NULL,
    -- Whom it is for, where that has to be an active member still.
    person {bytes},
    recipient {text} NOT NULL,
    content {bytes} NOT NULL,
    state {int} NOT NULL,
    attempts {int} NOT NULL,
    next_at {int} NOT NULL,
    -- Not worth sending afterwards.
    not_after {int} NOT NULL,
    error {text},
    created_at {int} NOT NULL,
    finished_at {int},
    PRIMARY KEY (company, id)
) {clustered};

CREATE INDEX mail_waiting ON mail (company, next_at, id) WHERE state = 0;
CREATE INDEX mail_by_content ON mail (company, content, state);

-- One digest per company and ISO week: the key is what makes it so.
CREATE TABLE digest (
    company {int} NOT NULL,
    year {int} NOT NULL,
    week {int} NOT NULL,
    content {bytes} NOT NULL,
    overdue {int} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, year, week)
) {clustered};

-- When the digest's schedule last changed: what would have been due before that is not made up for.
CREATE TABLE digest_schedule (
    company {int} NOT NULL PRIMARY KEY,
    since {int} NOT NULL
);

-- Open invitations. Accepting or revoking one removes it.
CREATE TABLE invitation (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    hash {bytes} NOT NULL,
    email {text} NOT NULL,
    role {text} NOT NULL,
    invited_by {text},
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

CREATE UNIQUE INDEX invitation_by_hash ON invitation (company, hash);
CREATE UNIQUE INDEX invitation_by_email ON invitation (company, email);

-- Somebody said they forgot their password. Kept for a moment whether such a person exists or not, so that the
-- answer takes the same time.
CREATE TABLE reset_request (
    email {text} NOT NULL PRIMARY KEY,
    address {text},
    requested_at {int} NOT NULL
) {clustered};

CREATE TABLE password_reset (
    hash {bytes} NOT NULL PRIMARY KEY,
    person {bytes} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {clustered};

CREATE INDEX password_reset_by_person ON password_reset (person, created_at);

ALTER TABLE audit ADD COLUMN address {text};
