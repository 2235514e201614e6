-- Late events, and when what moved an account happened.

-- For a move by activity: when its event happened. For other moves it is null, because they happened when they were made.
ALTER TABLE status_history ADD COLUMN happened_at {int};

--- change

-- Whether a lifecycle event that is older than the account's latest move still moves it.
ALTER TABLE company ADD COLUMN late_events_move {int} NOT NULL DEFAULT 1;
