-- People at their browsers: who is logged in, and which forms were sent already.

-- A session is of one person in one company: it is found by the company in its text, as keys are. Only the hash of
-- the text is kept.
CREATE TABLE session (
    company {int} NOT NULL,
    hash {bytes} NOT NULL,
    id {bytes} NOT NULL,
    person {bytes} NOT NULL,
    created_at {int} NOT NULL,
    last_seen_at {int} NOT NULL,
    address {text},
    browser {text},
    PRIMARY KEY (company, hash)
) {clustered};

CREATE INDEX session_by_person ON session (person, company);

-- The forms whose command was committed: sending one twice does nothing twice.
CREATE TABLE submission (
    company {int} NOT NULL,
    form {bytes} NOT NULL,
    PRIMARY KEY (company, form)
) {clustered};
