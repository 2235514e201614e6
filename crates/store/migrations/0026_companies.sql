-- Companies and people that end: the deletion of a company, logins without a company, and a person's new address. And
-- limits on mail that people cause.

-- When a company will be deleted, and since when that is under way.
CREATE TABLE company_deletion (
    company {int} NOT NULL PRIMARY KEY,
    requested_at {int} NOT NULL,
    -- The name of the owner who asked; null for the server's administrator.
    requested_by {text},
    at {int} NOT NULL,
    began_at {int}
);

-- Links with which a person confirms a new address. Only the hash of the secret is kept.
CREATE TABLE address_change (
    hash {bytes} NOT NULL PRIMARY KEY,
    person {bytes} NOT NULL,
    email {text} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {clustered};

CREATE INDEX address_change_by_person ON address_change (person, created_at);

-- When mails of one kind went to one address: the mark is a hash of both. Forgotten after a day.
CREATE TABLE mail_budget (
    mark {bytes} NOT NULL PRIMARY KEY,
    -- Times and companies, as JSON.
    sent {text} NOT NULL,
    last_at {int} NOT NULL
) {clustered};

--- change
-- When a login was first seen without a company; it is deleted some time after that.
ALTER TABLE person ADD COLUMN left_at {int};

--- index
-- The entries about one thing: to erase an account's values in them, and to tell a person what is recorded about them.
CREATE INDEX audit_by_target ON audit (company, target, id) WHERE target IS NOT NULL;
