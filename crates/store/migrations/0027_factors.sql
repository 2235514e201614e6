-- Second factors (docs/identity.md). They belong to a login, whatever companies it works for.

-- `credential` is the authenticator's own id of the passkey; `public_key` is JSON with the key and its counter.
CREATE TABLE passkey (
    person {bytes} NOT NULL,
    id {bytes} NOT NULL,
    credential {bytes} NOT NULL,
    public_key {text} NOT NULL,
    name {text} NOT NULL,
    created_at {int} NOT NULL,
    last_used_at {int},
    PRIMARY KEY (person, id)
) {clustered};

CREATE UNIQUE INDEX passkey_by_credential ON passkey (credential);

-- An authenticator app, which counts once a code has confirmed it. `last_step` is the time step of the last code that
-- was accepted: each code works once.
CREATE TABLE totp (
    person {bytes} NOT NULL PRIMARY KEY,
    secret {bytes} NOT NULL,
    created_at {int} NOT NULL,
    confirmed_at {int},
    last_used_at {int},
    last_step {int} NOT NULL DEFAULT 0,
    wrong_codes {int} NOT NULL DEFAULT 0
);

-- The codes that were not used yet.
CREATE TABLE recovery_code (
    person {bytes} NOT NULL,
    hash {bytes} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (person, hash)
) {clustered};

-- Challenges that a passkey has answered, until they expire: each counts once.
CREATE TABLE spent_challenge (
    hash {bytes} NOT NULL PRIMARY KEY,
    expires_at {int} NOT NULL
);

--- change
-- When the person showed a second factor in this session.
ALTER TABLE session ADD COLUMN second_factor_at {int};

--- change
ALTER TABLE company ADD COLUMN second_factor_required {int} NOT NULL DEFAULT 0;

--- change
-- Whether the link was asked for in a session, to prove the address.
ALTER TABLE password_reset ADD COLUMN for_proof {int} NOT NULL DEFAULT 0;
