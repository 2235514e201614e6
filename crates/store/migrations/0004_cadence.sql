-- The contact cadence: who is due when, and for which episodes that was announced.

--- fill account by id, 5000 rows at a time
-- The clock runs in every stage that a company may track. Accounts that entered one while it was not tracked
-- count from then.
UPDATE account SET tracked_since = coalesce((
        SELECT max(h.at) FROM status_history h WHERE h.company = account.company AND h.account = account.id
    ), created_at)
WHERE {rows} AND status IN ('customer', 'in_trial', 'in_negotiation') AND tracked_since IS NULL;

--- change
-- A narrow row for every account in a stage that may be tracked, written with the account.
CREATE TABLE cadence (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    status {text} NOT NULL,
    -- 1: the account has a cadence of its own, and `at` is when contact is due. 0: it is on the company's, and
    -- `at` is when its clock started; the date is derived, so that a change of the setting changes no row here.
    own {int} NOT NULL,
    at {int} NOT NULL,
    -- Noted until it is surely over; then the row is one of those without.
    snoozed_until {text},
    -- The episode: the last contact, or a time before all times for "never".
    last_contact_at {int} NOT NULL,
    announced {int} NOT NULL,
    PRIMARY KEY (company, account)
) {clustered};

-- What was announced: one row, and so one event, for an account and the contact it followed.
CREATE TABLE contact_episode (
    company {int} NOT NULL,
    account {bytes} NOT NULL,
    last_contact_at {int} NOT NULL,
    announced_at {int} NOT NULL,
    PRIMARY KEY (company, account, last_contact_at)
) {clustered};

--- fill account by id, 5000 rows at a time
INSERT INTO cadence (company, account, status, own, at, snoozed_until, last_contact_at, announced)
SELECT company, id, status, CASE WHEN cadence_days IS NULL THEN 0 ELSE 1 END,
       coalesce(last_contact_at, tracked_since) + coalesce(cadence_days, 0) * 86400000000, snoozed_until,
       coalesce(last_contact_at, -9000000000000000000), 0
FROM account WHERE {rows} AND status IN ('customer', 'in_trial', 'in_negotiation');

--- index
CREATE INDEX cadence_by_time ON cadence (company, status, own, at, account) WHERE snoozed_until IS NULL;
CREATE INDEX cadence_unannounced ON cadence (company, status, own, at, account)
    WHERE announced = 0 AND snoozed_until IS NULL;
CREATE INDEX cadence_snoozed ON cadence (company, status, snoozed_until, account)
    WHERE snoozed_until IS NOT NULL;
CREATE INDEX cadence_snoozed_by_time ON cadence (company, status, own, at, account)
    WHERE snoozed_until IS NOT NULL;
