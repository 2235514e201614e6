-- For people's own SQL: the same data with PostgreSQL's own types. Recreated at every migration.
DROP SCHEMA IF EXISTS reporting CASCADE;
CREATE SCHEMA reporting;

CREATE VIEW reporting.account AS
SELECT c.slug AS project, encode(a.id, 'hex') AS id, a.imported_id, a.name, a.status,
       a.custom_fields::jsonb AS custom_fields,
       a.value_amount / 10000.0::numeric AS captured_value, a.value_currency AS captured_value_currency,
       ch.name AS channel, a.promo_code,
       to_timestamp(a.acquired_at / 1e6) AS acquired_at,
       to_timestamp(a.last_contact_at / 1e6) AS last_contact_at,
       to_timestamp(s.first_seen_at / 1e6) AS first_seen_at,
       to_timestamp(s.last_seen_at / 1e6) AS last_seen_at,
       to_timestamp(a.created_at / 1e6) AS created_at,
       to_timestamp(a.updated_at / 1e6) AS updated_at
FROM account a
JOIN company c ON c.id = a.company
LEFT JOIN channel ch ON ch.company = a.company AND ch.id = a.channel
LEFT JOIN account_seen s ON s.company = a.company AND s.account = a.id;

CREATE VIEW reporting.status_history AS
SELECT c.slug AS project, encode(h.account, 'hex') AS account, h.from_status, h.to_status, h.source,
       h.actor_kind, h.actor_name, h.note, to_timestamp(h.at / 1e6) AS at
FROM status_history h
JOIN company c ON c.id = h.company;

CREATE VIEW reporting.activity AS
SELECT c.slug AS project, encode(a.account, 'hex') AS account, a.kind, a.feature,
       a.metadata::jsonb AS metadata, to_timestamp(a.occurred_at / 1e6) AS occurred_at,
       to_timestamp(a.received_at / 1e6) AS received_at
FROM activity a
JOIN company c ON c.id = a.company;
