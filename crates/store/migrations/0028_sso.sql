-- Single sign-on (docs/identity.md).

-- A company's provider, and who may log in with it.
CREATE TABLE sso (
    company {int} NOT NULL PRIMARY KEY,
    id {bytes} NOT NULL,
    -- `off`, `optional` or `required`.
    mode {text} NOT NULL,
    issuer {text} NOT NULL,
    client_id {text} NOT NULL,
    -- The client secret, encrypted.
    secret {bytes} NOT NULL,
    -- Joined by commas.
    domains {text} NOT NULL,
    -- Of people who become members by logging in.
    role {text} NOT NULL,
    -- The owner who may log in with a password even if single sign-on is required.
    break_glass {bytes},
    updated_at {int} NOT NULL
);

-- The people that a company's provider knows, and their logins. A row ends with its login.
CREATE TABLE sso_identity (
    company {int} NOT NULL,
    issuer {text} NOT NULL,
    subject {text} NOT NULL,
    person {bytes} NOT NULL,
    -- The address that the provider vouched for at the last login.
    email {text} NOT NULL,
    created_at {int} NOT NULL,
    last_login_at {int} NOT NULL,
    PRIMARY KEY (company, issuer, subject)
) {clustered};

CREATE INDEX sso_identity_by_person ON sso_identity (person, company);

-- A domain is at most one company's. The server's administrator has confirmed that it is theirs.
CREATE TABLE claimed_domain (
    domain {text} NOT NULL PRIMARY KEY,
    company {int} NOT NULL,
    claimed_at {int} NOT NULL
);

CREATE INDEX claimed_domain_by_company ON claimed_domain (company, domain);

-- Members who were removed or left: they don't become members again just by logging in. A mark is the hash of an address,
-- or of an issuer and a subject.
CREATE TABLE removed_member (
    company {int} NOT NULL,
    mark {bytes} NOT NULL,
    removed_at {int} NOT NULL,
    PRIMARY KEY (company, mark)
) {clustered};

--- change
-- Whether the session began with single sign-on. Such a session works for its company only.
ALTER TABLE session ADD COLUMN by_sso {int} NOT NULL DEFAULT 0;
