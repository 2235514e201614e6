-- How many requests per second a token may make, if it has a limit of its own.
ALTER TABLE credential ADD COLUMN rate_limit {int};
