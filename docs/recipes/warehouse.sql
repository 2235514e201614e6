-- A warehouse that reads the reporting views of Rapport's PostgreSQL database. warehouse.md explains it.
-- Run it with psql on Rapport's database, as the role that Rapport uses. ./scripts/clients runs it too.

-- A role that can read the views and nothing else: no tables, no secrets. Give it a password, or a certificate.
CREATE ROLE warehouse LOGIN;
GRANT USAGE ON SCHEMA reporting TO warehouse;
GRANT SELECT ON ALL TABLES IN SCHEMA reporting TO warehouse;

SET ROLE warehouse;

-- The pipeline today: accounts and their value, by stage and currency.
SELECT project, status, captured_value_currency AS currency, count(*) AS accounts, sum(captured_value) AS value
FROM reporting.account
GROUP BY project, status, captured_value_currency
ORDER BY project, status;

-- How long accounts stay in a stage, from their moves.
SELECT project, to_status AS stage, count(*) AS times, avg(until - at) AS average
FROM (
    SELECT project, to_status, at, lead(at) OVER (PARTITION BY project, account ORDER BY at, id) AS until
    FROM reporting.status_history
) stays
WHERE until IS NOT NULL
GROUP BY project, to_status
ORDER BY project, average DESC;

-- Usage by week and feature.
SELECT project, date_trunc('week', day) AS week, feature, sum(events) AS events, count(DISTINCT account) AS accounts
FROM reporting.activity_per_day
WHERE day IS NOT NULL
GROUP BY project, week, feature
ORDER BY project, week, events DESC;

-- What the API calls an event. A custom field of the payload, too.
SELECT id, type, created_at, payload #>> '{data,account,custom_fields,plan}' AS plan
FROM reporting.event
ORDER BY created_at
LIMIT 20;

RESET ROLE;
