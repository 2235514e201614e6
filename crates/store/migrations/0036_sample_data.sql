-- Sample data, which one click removes again.

--- change
-- 1 for an account of the sample data.
ALTER TABLE account ADD COLUMN sample {int} NOT NULL DEFAULT 0;

--- change
ALTER TABLE channel ADD COLUMN sample {int} NOT NULL DEFAULT 0;

--- change
-- When sample data was added, while it is there.
ALTER TABLE company ADD COLUMN sample_since {int};

--- index
CREATE INDEX account_sample ON account (company, id) WHERE sample = 1;
