-- The key that encrypts the secrets in this database, by its fingerprint: no other key may be used. While the key is
-- changed, `previous` is the one that some secrets are still encrypted under. One row, once a key was used.
CREATE TABLE encryption_key (
    id {int} NOT NULL PRIMARY KEY,
    fingerprint {text} NOT NULL,
    previous {text}
);
