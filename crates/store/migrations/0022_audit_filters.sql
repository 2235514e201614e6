-- How many days a company keeps its audit log.
ALTER TABLE company ADD COLUMN audit_days {int} NOT NULL DEFAULT 730;

--- index
-- The entries of one person, those with one action, and those that are not logins, each newest first.
CREATE INDEX audit_by_actor ON audit (company, actor_id, id);
CREATE INDEX audit_by_action ON audit (company, action, id);
CREATE INDEX audit_without_logins ON audit (company, id)
    WHERE action <> 'session.begun' AND action <> 'session.failed';
