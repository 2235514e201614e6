-- Views of the list of accounts that the company keeps: a name, and the query of the page's address.
CREATE TABLE saved_view (
    company {int} NOT NULL,
    name_folded {text} NOT NULL,
    name {text} NOT NULL,
    query {text} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (company, name_folded)
) {clustered};
