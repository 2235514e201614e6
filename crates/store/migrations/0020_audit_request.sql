-- The request that a change came with, as its response and the access log name it.
ALTER TABLE audit ADD COLUMN request_id {text};
