-- What the trusted mail relay said about a mail's sender: `dmarc`, `dkim` or `spf` if it verified them that way, `none` if it
-- didn't; and the relay. Null for other messages, and while no relay is trusted.
ALTER TABLE message ADD COLUMN sender_check {text};
ALTER TABLE message ADD COLUMN sender_relay {text};
