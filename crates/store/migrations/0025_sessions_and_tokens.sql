-- When the person last proved in this session who they are. Null in sessions of earlier releases: only their login did.
ALTER TABLE session ADD COLUMN proved_at {int};

--- change
-- The person whose token it is, and when it stops working. A token without a person belongs to the company.
ALTER TABLE credential ADD COLUMN person {bytes};
ALTER TABLE credential ADD COLUMN expires_at {int};

--- change
-- How long sessions last: unused, and at all.
ALTER TABLE company ADD COLUMN session_idle_minutes {int} NOT NULL DEFAULT 20160;
ALTER TABLE company ADD COLUMN session_max_minutes {int} NOT NULL DEFAULT 129600;
