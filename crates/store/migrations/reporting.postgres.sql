-- For people's own SQL: the same data with PostgreSQL's own types, ids as the API shows them, and no secrets.
-- Applied at every migration, to views that may exist already.
--
-- People grant the right to read these views and build their own views on them, so none is ever dropped. Therefore:
-- - Add a column at the end. CREATE OR REPLACE VIEW refuses everything else: columns keep their order, names and types.
-- - A column that has to change its type or meaning gets a new name at the end. The old one stays as it is.
-- - If too much would change, make a new view with a new name, and keep the old one for as long as it can be filled.
-- - A migration can't drop a column that a view uses. First let the view compute it from something else.
--
-- One exception was made: up to schema version 17, `id` and `account` were the bytes in hexadecimal, which nothing else
-- shows. They became the ids of the API with version 18. Both are text, so the views could be replaced.
--
-- Not shown: hashes and encrypted secrets, sessions, links that were mailed, what a receiver answered, the path of a
-- webhook's URL (which often is a secret), and tables that only serve the service itself. A test lists those tables.
-- CREATE SCHEMA IF NOT EXISTS would need the right to create schemas even if this one exists.
DO $$
BEGIN
    IF to_regnamespace('reporting') IS NULL THEN
        CREATE SCHEMA reporting;
    END IF;
END $$;

-- Ids as the API shows them: 16 bytes in 26 digits of five bits each, the last one filled up with zeros.
CREATE OR REPLACE FUNCTION reporting.id_text(prefix text, id bytea, digits text DEFAULT '0123456789abcdefghjkmnpqrstvwxyz')
RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT prefix ||
           substr(digits, 1 + ((get_byte(id, 0) / 8) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 0) * 4 + get_byte(id, 1) / 64) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 1) / 2) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 1) * 16 + get_byte(id, 2) / 16) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 2) * 2 + get_byte(id, 3) / 128) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 3) / 4) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 3) * 8 + get_byte(id, 4) / 32) & 31), 1) ||
           substr(digits, 1 + (get_byte(id, 4) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 5) / 8) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 5) * 4 + get_byte(id, 6) / 64) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 6) / 2) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 6) * 16 + get_byte(id, 7) / 16) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 7) * 2 + get_byte(id, 8) / 128) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 8) / 4) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 8) * 8 + get_byte(id, 9) / 32) & 31), 1) ||
           substr(digits, 1 + (get_byte(id, 9) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 10) / 8) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 10) * 4 + get_byte(id, 11) / 64) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 11) / 2) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 11) * 16 + get_byte(id, 12) / 16) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 12) * 2 + get_byte(id, 13) / 128) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 13) / 4) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 13) * 8 + get_byte(id, 14) / 32) & 31), 1) ||
           substr(digits, 1 + (get_byte(id, 14) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 15) / 8) & 31), 1) ||
           substr(digits, 1 + ((get_byte(id, 15) * 4) & 31), 1)
$$;

-- What caused a change: `per_…` for a person, `crd_…` for a token or key, null for the service and its command line.
CREATE OR REPLACE FUNCTION reporting.actor_text(kind text, id bytea)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT reporting.id_text(CASE kind WHEN 'person' THEN 'per_' ELSE 'crd_' END, id)
$$;

-- Times are stored in microseconds.
CREATE OR REPLACE FUNCTION reporting.at(micros bigint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT to_timestamp(micros / 1e6)
$$;

-- Whoever may read a view may call what it calls, whatever the default privileges are.
GRANT EXECUTE ON FUNCTION reporting.id_text(text, bytea, text), reporting.actor_text(text, bytea), reporting.at(bigint)
TO PUBLIC;

CREATE OR REPLACE VIEW reporting.account AS
SELECT c.slug AS project, reporting.id_text('acc_', a.id) AS id, a.imported_id, a.name, a.status,
       a.custom_fields::jsonb AS custom_fields,
       a.value_amount / 10000.0::numeric AS captured_value, a.value_currency AS captured_value_currency,
       ch.name AS channel, a.promo_code,
       to_timestamp(a.acquired_at / 1e6) AS acquired_at,
       to_timestamp(a.last_contact_at / 1e6) AS last_contact_at,
       to_timestamp(s.first_seen_at / 1e6) AS first_seen_at,
       to_timestamp(s.last_seen_at / 1e6) AS last_seen_at,
       to_timestamp(a.created_at / 1e6) AS created_at,
       to_timestamp(a.updated_at / 1e6) AS updated_at,
       reporting.id_text('chn_', a.channel) AS channel_id, a.cadence_days,
       a.snoozed_until::date AS snoozed_until, reporting.at(a.tracked_since) AS tracked_since,
       a.campaign_hold = 1 AS campaign_hold, a.sample = 1 AS sample,
       reporting.at(a.imported_contact_at) AS imported_contact_at
FROM account a
JOIN company c ON c.id = a.company
LEFT JOIN channel ch ON ch.company = a.company AND ch.id = a.channel
LEFT JOIN account_seen s ON s.company = a.company AND s.account = a.id;

CREATE OR REPLACE VIEW reporting.status_history AS
SELECT c.slug AS project, reporting.id_text('acc_', h.account) AS account, h.from_status, h.to_status, h.source,
       h.actor_kind, h.actor_name, h.note, to_timestamp(h.at / 1e6) AS at,
       reporting.id_text('his_', h.id) AS id, reporting.actor_text(h.actor_kind, h.actor_id) AS actor_id,
       reporting.at(h.happened_at) AS happened_at
FROM status_history h
JOIN company c ON c.id = h.company;

CREATE OR REPLACE VIEW reporting.activity AS
SELECT c.slug AS project, reporting.id_text('acc_', a.account) AS account, a.kind, a.feature,
       a.metadata::jsonb AS metadata, to_timestamp(a.occurred_at / 1e6) AS occurred_at,
       to_timestamp(a.received_at / 1e6) AS received_at
FROM activity a
JOIN company c ON c.id = a.company;

-- Events per account, day and feature. They are kept longer than the events themselves; the total of days that are no
-- longer kept apart has no day.
CREATE OR REPLACE VIEW reporting.activity_per_day AS
SELECT c.slug AS project, reporting.id_text('acc_', n.account) AS account,
       CASE WHEN n.day <> 0 THEN date '1970-01-01' + n.day::int END AS day, nullif(n.feature, '') AS feature,
       n.count AS events, reporting.at(n.last_used_at) AS last_used_at
FROM activity_count n
JOIN company c ON c.id = n.company;

CREATE OR REPLACE VIEW reporting.project AS
SELECT c.slug AS project, c.name, c.cadence_days, c.tracked_stages, c.digest_enabled = 1 AS digest_enabled,
       c.digest_weekday, c.time_zone, c.default_currency, reporting.at(c.created_at) AS created_at,
       c.audit_days, c.export_role, c.delete_role, c.session_idle_minutes, c.session_max_minutes,
       c.second_factor_required = 1 AS second_factor_required, c.late_events_move = 1 AS late_events_move
FROM company c;

CREATE OR REPLACE VIEW reporting.member AS
SELECT c.slug AS project, reporting.id_text('per_', m.person) AS person, p.name, p.email, m.role,
       reporting.at(m.created_at) AS created_at, reporting.at(m.deactivated_at) AS deactivated_at
FROM member m
JOIN company c ON c.id = m.company
JOIN person p ON p.id = m.person;

CREATE OR REPLACE VIEW reporting.invitation AS
SELECT c.slug AS project, reporting.id_text('inv_', i.id) AS id, i.email, i.role, i.invited_by,
       reporting.at(i.created_at) AS created_at, reporting.at(i.expires_at) AS expires_at
FROM invitation i
JOIN company c ON c.id = i.company;

-- API tokens, ingest keys and inbound keys.
CREATE OR REPLACE VIEW reporting.credential AS
SELECT c.slug AS project, reporting.id_text('crd_', t.id) AS id, t.kind, t.name, t.role,
       reporting.at(t.created_at) AS created_at, reporting.at(t.last_used_at) AS last_used_at,
       reporting.id_text('per_', t.person) AS person, reporting.at(t.expires_at) AS expires_at,
       t.rate_limit
FROM credential t
JOIN company c ON c.id = t.company;

CREATE OR REPLACE VIEW reporting.channel AS
SELECT c.slug AS project, reporting.id_text('chn_', ch.id) AS id, ch.name, reporting.at(ch.created_at) AS created_at,
       ch.sample = 1 AS sample
FROM channel ch
JOIN company c ON c.id = ch.company;

CREATE OR REPLACE VIEW reporting.promo_code AS
SELECT c.slug AS project, p.code, reporting.id_text('chn_', p.channel) AS channel,
       reporting.at(p.archived_at) AS archived_at, reporting.at(p.created_at) AS created_at
FROM promo_code p
JOIN company c ON c.id = p.company;

CREATE OR REPLACE VIEW reporting.account_address AS
SELECT c.slug AS project, reporting.id_text('acc_', a.account) AS account, a.address,
       reporting.at(a.created_at) AS created_at
FROM account_address a
JOIN company c ON c.id = a.company;

-- The texts that accounts are found by, one row per custom field and text.
CREATE OR REPLACE VIEW reporting.account_field AS
SELECT c.slug AS project, reporting.id_text('acc_', f.account) AS account, f.field, f.value
FROM account_field f
JOIN company c ON c.id = f.company;

-- Accounts in a stage that may be tracked. `next_contact_at` is the due date if nothing is snoozed.
CREATE OR REPLACE VIEW reporting.cadence AS
SELECT c.slug AS project, reporting.id_text('acc_', k.account) AS account, k.status,
       coalesce(a.cadence_days, c.cadence_days) AS cadence_days,
       reporting.at(k.at + CASE k.own WHEN 1 THEN 0 ELSE c.cadence_days * 86400000000 END) AS next_contact_at,
       k.snoozed_until::date AS snoozed_until, k.announced = 1 AS announced
FROM cadence k
JOIN company c ON c.id = k.company
JOIN account a ON a.company = k.company AND a.id = k.account;

-- Reminders: one for an account and the contact it followed. No contact yet is null.
CREATE OR REPLACE VIEW reporting.contact_episode AS
SELECT c.slug AS project, reporting.id_text('acc_', e.account) AS account,
       CASE WHEN e.last_contact_at > -9000000000000000000 THEN reporting.at(e.last_contact_at) END AS last_contact_at,
       reporting.at(e.announced_at) AS announced_at
FROM contact_episode e
JOIN company c ON c.id = e.company;

CREATE OR REPLACE VIEW reporting.contact AS
SELECT c.slug AS project, reporting.id_text('ctc_', t.id) AS id, reporting.id_text('acc_', t.account) AS account,
       t.kind, t.note, t.actor_kind, reporting.actor_text(t.actor_kind, t.actor_id) AS actor_id, t.actor_name,
       reporting.at(t.occurred_at) AS occurred_at, reporting.at(t.created_at) AS created_at
FROM contact t
JOIN company c ON c.id = t.company;

CREATE OR REPLACE VIEW reporting.note AS
SELECT c.slug AS project, reporting.id_text('nte_', n.id) AS id, reporting.id_text('acc_', n.account) AS account,
       n.text, n.pinned = 1 AS pinned, n.author_kind, reporting.actor_text(n.author_kind, n.author_id) AS author_id,
       n.author_name, reporting.at(n.created_at) AS created_at
FROM note n
JOIN company c ON c.id = n.company;

-- Who corrected what. What was changed or deleted isn't shown.
CREATE OR REPLACE VIEW reporting.correction AS
SELECT c.slug AS project, reporting.id_text('cor_', k.id) AS id, reporting.id_text('acc_', k.account) AS account,
       k.entry_kind, reporting.id_text(CASE k.entry_kind WHEN 'contact' THEN 'ctc_' WHEN 'message' THEN 'msg_' ELSE 'nte_'
       END, k.entry) AS entry, k.act, k.fields, k.author_kind,
       reporting.actor_text(k.author_kind, k.author_id) AS author_id, k.author_name, k.actor_kind,
       reporting.actor_text(k.actor_kind, k.actor_id) AS actor_id, k.actor_name, reporting.at(k.at) AS at,
       reporting.at(k.undone_at) AS undone_at, k.undone_kind,
       reporting.actor_text(k.undone_kind, k.undone_id) AS undone_id, k.undone_name
FROM correction k
JOIN company c ON c.id = k.company;

CREATE OR REPLACE VIEW reporting.conversation AS
SELECT c.slug AS project, reporting.id_text('cnv_', v.id) AS id, reporting.id_text('acc_', v.account) AS account,
       v.subject, v.channel, v.message_count, reporting.at(v.last_message_at) AS last_message_at,
       reporting.at(v.created_at) AS created_at
FROM conversation v
JOIN company c ON c.id = v.company;

CREATE OR REPLACE VIEW reporting.message AS
SELECT c.slug AS project, reporting.id_text('msg_', m.id) AS id,
       reporting.id_text('cnv_', m.conversation) AS conversation, reporting.id_text('acc_', m.account) AS account,
       m.direction, m.channel, m.subject, m.body, m.body_truncated = 1 AS body_truncated, m.author_kind,
       reporting.actor_text(m.author_kind, m.author_id) AS author_id, m.author_name, m.sender_address, m.sender_name,
       m.attachments::jsonb AS attachments, m.automatic = 1 AS automatic,
       reporting.at(m.occurred_at) AS occurred_at, reporting.at(m.created_at) AS created_at,
       m.sender_check, m.sender_relay
FROM message m
JOIN company c ON c.id = m.company;

CREATE OR REPLACE VIEW reporting.campaign AS
SELECT c.slug AS project, reporting.id_text('cmp_', m.id) AS id, m.name, m.goal,
       m.include_trials = 1 AS include_trials, m.filters::jsonb AS filters,
       reporting.at(m.created_at) AS created_at, reporting.at(m.updated_at) AS updated_at
FROM campaign m
JOIN company c ON c.id = m.company;

CREATE OR REPLACE VIEW reporting.saved_view AS
SELECT c.slug AS project, v.name, v.query, reporting.at(v.created_at) AS created_at,
       reporting.id_text('per_', v.created_by) AS created_by
FROM saved_view v
JOIN company c ON c.id = v.company;

-- `rate` is what one unit of `currency` is worth in `base_currency`, from `valid_from` on.
CREATE OR REPLACE VIEW reporting.exchange_rate AS
SELECT c.slug AS project, reporting.id_text('rat_', r.id) AS id, r.base AS base_currency, r.currency,
       DATE '1970-01-01' + r.valid_from::int AS valid_from, r.rate / 10000000000.0::numeric AS rate,
       reporting.at(r.created_at) AS created_at
FROM exchange_rate r
JOIN company c ON c.id = r.company;

CREATE OR REPLACE VIEW reporting.event AS
SELECT c.slug AS project, reporting.id_text('evt_', e.id) AS id, e.kind AS type,
       reporting.id_text('acc_', e.account) AS account, e.payload::jsonb AS payload,
       reporting.at(e.created_at) AS created_at
FROM event e
JOIN company c ON c.id = e.company;

CREATE OR REPLACE VIEW reporting.webhook AS
SELECT c.slug AS project, reporting.id_text('whk_', w.id) AS id,
       substring(w.url FROM '^[a-z]+://(?:[^/?#]*@)?([^/?#]*)') AS host, w.description, w.events,
       w.disabled_by_hand = 0 AND w.auto_disabled_at IS NULL AND w.deleted_at IS NULL AS enabled,
       reporting.at(w.auto_disabled_at) AS auto_disabled_at, w.failure_streak,
       reporting.at(w.created_at) AS created_at, reporting.at(w.updated_at) AS updated_at,
       reporting.at(w.deleted_at) AS deleted_at
FROM webhook w
JOIN company c ON c.id = w.company;

-- `state` as the API shows it: an open delivery of a disabled webhook is held, of a deleted one failed.
CREATE OR REPLACE VIEW reporting.delivery AS
SELECT c.slug AS project, reporting.id_text('dlv_', d.id) AS id, reporting.id_text('whk_', d.webhook) AS webhook,
       reporting.id_text('evt_', d.event) AS event, d.kind AS type, reporting.id_text('acc_', d.account) AS account,
       CASE WHEN d.state = 1 THEN 'succeeded'
            WHEN d.state = 2 OR w.id IS NULL OR w.deleted_at IS NOT NULL OR d.created_at < w.dropped_before THEN 'failed'
            WHEN w.disabled_by_hand = 0 AND w.auto_disabled_at IS NULL THEN 'pending'
            WHEN d.kind = 'webhook.test' AND d.attempts = 0 THEN 'pending'
            ELSE 'held' END AS state,
       d.attempts AS attempt_count, d.response_code, d.error,
       reporting.at(d.created_at) AS created_at, reporting.at(d.finished_at) AS finished_at
FROM delivery d
JOIN company c ON c.id = d.company
LEFT JOIN webhook w ON w.company = d.company AND w.id = d.webhook;

CREATE OR REPLACE VIEW reporting.attempt AS
SELECT c.slug AS project, reporting.id_text('dlv_', t.delivery) AS delivery, t.number,
       reporting.at(t.started_at) AS started_at, t.succeeded = 1 AS succeeded, t.manual = 1 AS manual,
       t.response_code, t.failure AS error_class, t.error, t.total_us / 1000.0::numeric AS duration_ms
FROM attempt t
JOIN company c ON c.id = t.company;

CREATE OR REPLACE VIEW reporting.redelivery AS
SELECT c.slug AS project, reporting.id_text('rdl_', r.id) AS id, r.filter::jsonb AS filter, r.total, r.queued, r.skipped,
       reporting.at(r.created_at) AS created_at, reporting.at(r.cancelled_at) AS cancelled_at,
       reporting.at(r.finished_at) AS finished_at
FROM redelivery r
JOIN company c ON c.id = r.company;

CREATE OR REPLACE VIEW reporting.ingest_reject AS
SELECT c.slug AS project, reporting.id_text('rej_', r.id) AS id, reporting.at(r.at) AS at, r.account, r.kind, r.code,
       r.field, r.detail
FROM ingest_reject r
JOIN company c ON c.id = r.company;

CREATE OR REPLACE VIEW reporting.import AS
SELECT c.slug AS project, reporting.id_text('imp_', i.id) AS id, i.filename, i.state, i.mode, i.bytes, i.rows_done,
       i.rows_total, i.created, i.updated, i.unchanged, i.skipped, i.failed, i.actor_kind,
       reporting.actor_text(i.actor_kind, i.actor_id) AS actor_id, i.actor_name,
       reporting.at(i.created_at) AS created_at, reporting.at(i.started_at) AS started_at,
       reporting.at(i.finished_at) AS finished_at, reporting.at(i.undone_at) AS undone_at
FROM import i
JOIN company c ON c.id = i.company
WHERE i.deleted_at IS NULL;

CREATE OR REPLACE VIEW reporting.import_error AS
SELECT c.slug AS project, reporting.id_text('imp_', e.import) AS import, e.line, e.cells::json AS cells, e.reason
FROM import_error e
JOIN company c ON c.id = e.company;

CREATE OR REPLACE VIEW reporting.mail AS
SELECT c.slug AS project, reporting.id_text('mai_', m.id) AS id, m.kind,
       reporting.id_text('per_', m.person) AS person, m.recipient,
       CASE m.state WHEN 0 THEN 'waiting' WHEN 1 THEN 'sent' ELSE 'failed' END AS state, m.attempts, m.error,
       reporting.at(m.created_at) AS created_at, reporting.at(m.finished_at) AS finished_at
FROM mail m
JOIN company c ON c.id = m.company;

CREATE OR REPLACE VIEW reporting.digest AS
SELECT c.slug AS project, d.year, d.week, d.overdue, reporting.at(d.created_at) AS created_at
FROM digest d
JOIN company c ON c.id = d.company;

CREATE OR REPLACE VIEW reporting.audit AS
SELECT c.slug AS project, reporting.id_text('aud_', a.id) AS id, a.actor_kind,
       reporting.actor_text(a.actor_kind, a.actor_id) AS actor_id, a.actor_name, a.action, a.target,
       a.detail::jsonb AS detail, a.address, reporting.at(a.at) AS at,
       a.request_id
FROM audit a
JOIN company c ON c.id = a.company;
