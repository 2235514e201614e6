-- Exchange rates, and a view of them for reports.

CREATE TABLE exchange_rate (
    company {int} NOT NULL,
    id {bytes} NOT NULL,
    -- The default currency that the rate was entered for. It is never applied to another one.
    base {text} NOT NULL,
    currency {text} NOT NULL,
    -- Days since 1970.
    valid_from {int} NOT NULL,
    -- What one unit of the currency is worth, in ten-billionths of the base.
    rate {int} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, id)
) {clustered};

-- The newest rate of a currency comes first.
CREATE UNIQUE INDEX exchange_rate_by_day ON exchange_rate (company, base, currency, valid_from DESC);
