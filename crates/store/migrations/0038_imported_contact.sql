-- The last contact that an import named. No contact was logged for it, so corrections couldn't find it.

--- change
ALTER TABLE account ADD COLUMN imported_contact_at {int};
