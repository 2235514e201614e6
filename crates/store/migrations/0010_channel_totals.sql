-- How many accounts each promo code brought and what they are worth, counted in the background: a page could not go
-- over a million accounts. Values are kept per currency and never added up over several; '' counts the accounts
-- without a value. A sum may be larger than a 64-bit integer of ten-thousandths, so it is kept in two parts.
CREATE TABLE channel_total (
    company {int} NOT NULL,
    channel {bytes} NOT NULL,
    code_folded {text} NOT NULL,
    currency {text} NOT NULL,
    code {text} NOT NULL,
    accounts {int} NOT NULL,
    high {int} NOT NULL,
    low {int} NOT NULL,
    PRIMARY KEY (company, channel, code_folded, currency)
) {clustered};

-- When a company was last counted, and how long that took: whoever counts next waits accordingly.
CREATE TABLE channel_count (
    company {int} NOT NULL,
    counted_at {int} NOT NULL,
    took {int} NOT NULL,
    PRIMARY KEY (company)
) {clustered};
