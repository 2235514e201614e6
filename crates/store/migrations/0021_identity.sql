-- Who a login belongs to (docs/identity.md). An address may have several logins: one that is proven by mail, and one for
-- each company that handed over a link. People who are here already have proved nothing yet; they keep their companies.
{only postgres}ALTER TABLE person DROP CONSTRAINT person_email_key;
{only postgres}ALTER TABLE person ADD COLUMN proven_at {int};
-- SQLite cannot drop a constraint.
{only sqlite}CREATE TABLE person_without_constraint (
{only sqlite}    id {bytes} NOT NULL PRIMARY KEY,
{only sqlite}    email {text} NOT NULL,
{only sqlite}    name {text} NOT NULL,
{only sqlite}    password_hash {text} NOT NULL,
{only sqlite}    created_at {int} NOT NULL,
{only sqlite}    -- When the owner of the address proved it.
{only sqlite}    proven_at {int}
{only sqlite});
{only sqlite}INSERT INTO person_without_constraint (id, email, name, password_hash, created_at)
{only sqlite}SELECT id, email, name, password_hash, created_at FROM person;
{only sqlite}DROP TABLE person;
{only sqlite}ALTER TABLE person_without_constraint RENAME TO person;

--- index
CREATE INDEX person_by_email ON person (email, id);
CREATE UNIQUE INDEX person_proven ON person (email) WHERE proven_at IS NOT NULL;

--- change
-- The name that was proposed, and whether the link went by mail, so that using it proves the address.
ALTER TABLE invitation ADD COLUMN name {text};
ALTER TABLE invitation ADD COLUMN by_mail {int} NOT NULL DEFAULT 0;

--- change
ALTER TABLE password_reset ADD COLUMN by_mail {int} NOT NULL DEFAULT 0;
