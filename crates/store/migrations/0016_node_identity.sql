-- Which place a node runs from, as the lock on its data directory proves it: the next node of that place knows
-- that this one is dead. Null where nothing proves it.
ALTER TABLE node ADD COLUMN identity {text};
