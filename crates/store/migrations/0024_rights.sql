-- The lowest role that may export, and the lowest that may delete accounts and erase payloads: `admin`, or `member` if the
-- company grants it to members. The new role `viewer` needs no change, because roles are plain text.
ALTER TABLE company ADD COLUMN export_role {text} NOT NULL DEFAULT 'admin';
ALTER TABLE company ADD COLUMN delete_role {text} NOT NULL DEFAULT 'admin';

--- change
-- Who saved a view, because viewers may change only their own. Null for views that an older release saved.
ALTER TABLE saved_view ADD COLUMN created_by {bytes};
