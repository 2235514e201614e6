-- Whether any attempt at a webhook's current URL succeeded. The sender keeps receivers that have proved themselves
-- apart from new and failing ones, and must know it again after a restart.
ALTER TABLE webhook ADD COLUMN proven {int} NOT NULL DEFAULT 0;

--- fill webhook by id, 20 rows at a time
UPDATE webhook SET proven = 1 WHERE {rows} AND EXISTS
    (SELECT 1 FROM delivery d WHERE d.company = webhook.company AND d.webhook = webhook.id AND d.state = 1
     AND d.created_at >= webhook.url_changed_at);

--- index
-- What nodes compare with what they hold in memory, and what waits for one of them.
CREATE INDEX manual_attempt_owned ON manual_attempt (owner, company, id) WHERE owner IS NOT NULL;
CREATE INDEX manual_attempt_waiting ON manual_attempt (company, id) WHERE owner IS NULL;
CREATE INDEX manual_attempt_by_redelivery ON manual_attempt (company, redelivery) WHERE redelivery IS NOT NULL;
