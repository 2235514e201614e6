-- What a webhook is sent: filters, headers of its own, and events that it has to ask for.

--- change
-- Conditions on its events as JSON, empty without any.
ALTER TABLE webhook ADD COLUMN filters {text} NOT NULL DEFAULT '';
-- Names and values of its headers as JSON, empty without any. A secret header has no value here.
ALTER TABLE webhook ADD COLUMN headers {text} NOT NULL DEFAULT '';
-- The values of its secret headers, encrypted under a key that lives outside the database.
ALTER TABLE webhook ADD COLUMN header_secrets {bytes};

--- change
-- The opt-in events that some webhook of the company selects, joined by commas.
ALTER TABLE company ADD COLUMN opt_in_events {text} NOT NULL DEFAULT '';
