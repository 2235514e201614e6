"""What Schemathesis needs to know beyond the OpenAPI document to call the API; see ./scripts/fuzz-api."""

import itertools
from ipaddress import IPv4Address

import schemathesis
from hypothesis import strategies as st

# Members that follow rules which a schema can't express, with values that follow them. Otherwise nearly every request
# would be refused because of one of them, and nothing behind that would be tested.
FITTING = {
    "account": None,
    "account_id": None,
    "address": "ana@nordlys.example",
    "break_glass_owner": None,
    "captured_value": "1200.50",
    "captured_value_currency": "EUR",
    "channel": None,
    "default_currency": "EUR",
    "delimiter": ",",
    "domains": ["acme.example"],
    "email": "ana@acme.example",
    "encoding": "utf-8",
    "expires_at": None,
    "mapping": {"name": "name", "imported_id": "imported_id"},
    "occurred_at": "2026-01-01T00:00:00Z",
    "owner": None,
    "promo_code": None,
    "snoozed_until": None,
    "time_zone": "Europe/Berlin",
    "to": "everyone",
    "tracked_stages": ["customer"],
    "webhook": None,
}
# No request may leave this machine: names below .example never have an address.
UNREACHABLE = {
    "domain": "nordlys.example",
    "issuer": "https://login.acme.example",
    "url": "https://hooks.acme.example/rapport",
}

numbers = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    # Every request has an address of its own, since the public paths allow one request a second for each.
    case.headers = case.headers or {}
    case.headers["X-Forwarded-For"] = str(IPv4Address("10.0.0.0") + next(numbers))
    fits = case.meta is not None and case.meta.generation.mode.is_positive
    case.body = replaced(case.body, UNREACHABLE)
    if fits:
        case.body = replaced(case.body, FITTING)


@schemathesis.hook
def filter_case(context, case):
    """Leaves out null for a body that is optional: it is allowed, but Schemathesis takes it for invalid."""
    body = case.operation.definition.raw.get("requestBody", {})
    return case.body is not None or body.get("required", False)


def replaced(value, values):
    """The same with other values for these members, wherever they are. Those of another type stay wrong."""
    if isinstance(value, list):
        return [replaced(item, values) for item in value]
    if not isinstance(value, dict):
        return value
    fits = {name: values is FITTING or isinstance(member, str) for name, member in value.items() if name in values}
    return {
        name: values[name] if fits.get(name) else replaced(member, values) for name, member in value.items()
    }


word = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)


def mail(sender, domain, subject, number, body):
    head = [
        f"From: {sender}@{domain}.example",
        "To: sales@acme.example",
        f"Subject: {subject}",
        f"Message-ID: <{number}@{domain}.example>",
    ]
    return "\r\n".join([*head, "", body]).encode()


mails = st.builds(mail, word, word, word, st.integers(min_value=0), st.text(max_size=200))
schemathesis.openapi.media_type("message/rfc822", st.one_of(mails, st.binary(max_size=200)))
files = st.lists(st.tuples(word, word), min_size=1, max_size=5).map(
    lambda rows: "\n".join(["name,imported_id", *(",".join(row) for row in rows)]).encode()
)
schemathesis.openapi.media_type("text/csv", st.one_of(files, st.binary(max_size=200)))
