-- Webhooks that an event has yet to be handed to. An event for a great many gets a few deliveries in the transaction
-- that caused it, so that nobody waits for the rest; these rows are the rest, and become deliveries soon after.
CREATE TABLE fan_out (
    company {int} NOT NULL,
    event {bytes} NOT NULL,
    part {int} NOT NULL,
    -- Ids of webhooks, one after another.
    webhooks {bytes} NOT NULL,
    PRIMARY KEY (company, event, part)
) {clustered};
