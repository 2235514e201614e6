"""A tour of the API with the client that openapi-python-client generates from /api/openapi.json.

`./scripts/clients` generates the client, type-checks this program against it and runs it on a fresh company.
"""

import io
import os
from typing import Any, TypeVar

from rapport_client import AuthenticatedClient
from rapport_client.api.accounts import create_account, delete_account, get_account, list_accounts
from rapport_client.api.channels import add_code, create_channel
from rapport_client.api.imports import upload_import
from rapport_client.api.upsert_and_ingest import ingest, upsert_by_imported_id
from rapport_client.api.webhooks import create_webhook, delete_webhook, list_webhooks
from rapport_client.models import (
    Account,
    AccountCreate,
    ActivityEvent,
    ActivityKind,
    Channel,
    ChannelName,
    CodeCreate,
    Import,
    IngestReply,
    IngestRequest,
    NewWebhookSecret,
    PageAccount,
    PageWebhook,
    Problem,
    PromoCode,
    SelectableEvent,
    Status,
    UpsertReply,
    UpsertRequest,
    WebhookCreate,
)
from rapport_client.types import UNSET, File, Response

Parsed = TypeVar("Parsed")

URL = os.environ["RAPPORT_URL"]
PROJECT = os.environ["RAPPORT_PROJECT"]

api = AuthenticatedClient(base_url=URL, token=os.environ["RAPPORT_TOKEN"])
# The ingest key goes in its own header, without a prefix.
product = AuthenticatedClient(
    base_url=URL, token=os.environ["RAPPORT_INGEST_KEY"], prefix="", auth_header_name="X-Service-Ingest-Key"
)


def expect(status: int, kind: type[Parsed], response: Response[Any]) -> Parsed:
    """Returns the parsed body, if the response has this status and its body was parsed as this type."""
    assert response.status_code == status, f"{response.status_code}, not {status}: {response.content!r}"
    assert isinstance(response.parsed, kind), f"{response.parsed!r} is not of type {kind.__name__}"
    return response.parsed


# Create an account and read it back.
nordlys = expect(
    201,
    Account,
    create_account.sync_detailed(
        client=api,
        body=AccountCreate(
            name="Nordlys Bank",
            imported_id="crm-1",
            status=Status.CONTACTED,
            captured_value="48000",
            captured_value_currency="EUR",
        ),
    ),
)
assert nordlys.status is Status.CONTACTED
assert nordlys.created_at.tzinfo is not None
assert expect(200, Account, get_account.sync_detailed(nordlys.id, client=api)) == nordlys

# Create a channel with a promo code.
channel = expect(201, Channel, create_channel.sync_detailed(client=api, body=ChannelName(name="Spring fair")))
code = expect(201, PromoCode, add_code.sync_detailed(channel.id, client=api, body=CodeCreate(code="SPRING_26")))
assert code.code == "SPRING_26"

# Upsert by the id in your own system: the first call creates the account, and the same call again changes nothing.
record = UpsertRequest.from_dict(
    {
        "project": PROJECT,
        "imported_id": "crm-2",
        "name": "Fjell Energi",
        "custom_fields": {"plan": "team", "seats": 12},
        "promo_code": "spring_26",
    }
)
created = expect(201, UpsertReply, upsert_by_imported_id.sync_detailed(client=api, body=record))
assert created.created and created.promo_code_matched
assert created.account.custom_fields["seats"] == 12
assert created.account.channel is not None and created.account.channel.id == channel.id
repeated = expect(200, UpsertReply, upsert_by_imported_id.sync_detailed(client=api, body=record))
assert not repeated.created and repeated.changed == []
assert repeated.account.id == created.account.id

# List the accounts, one to a page: send `next_cursor` until it is null.
names: list[str] = []
pages = 0
cursor: str | None = None
while pages == 0 or cursor is not None:
    page = expect(
        200, PageAccount, list_accounts.sync_detailed(client=api, limit=1, cursor=UNSET if cursor is None else cursor)
    )
    names += [account.name for account in page.items]
    cursor = page.next_cursor
    pages += 1
assert sorted(names) == ["Fjell Energi", "Nordlys Bank"], names
contacted = expect(
    200, PageAccount, list_accounts.sync_detailed(client=api, status=[Status.CONTACTED, Status.CUSTOMER])
)
assert [account.id for account in contacted.items] == [nordlys.id]

# Report activity: the trial moves the account, and an event without an account is returned.
batch = IngestRequest(
    events=[
        ActivityEvent(kind=ActivityKind.TRIAL_STARTED, imported_id="crm-1", event_id="e-1"),
        ActivityEvent(kind=ActivityKind.FEATURE_USED, imported_id="crm-1", feature="app.export", event_id="e-2"),
        ActivityEvent(kind=ActivityKind.APP_OPENED, imported_id="nobody"),
    ]
)
reply = expect(200, IngestReply, ingest.sync_detailed(client=product, body=batch))
assert (reply.received, reply.accepted, len(reply.unmatched), reply.rejected) == (3, 2, 1, [])
assert reply.unmatched[0]["imported_id"] == "nobody"
assert expect(200, Account, get_account.sync_detailed(nordlys.id, client=api)).status is Status.IN_TRIAL

# Upload a CSV file. Its columns are recognized, and nothing is imported until you start the import.
table = io.BytesIO(b"imported_id,name\ncrm-3,Havn Logistikk\n")
upload = expect(201, Import, upload_import.sync_detailed(client=api, body=File(payload=table), filename="accounts.csv"))
assert [column.name for column in upload.columns] == ["imported_id", "name"], upload.columns

# Errors are problem documents. This one names the invalid field.
problem = expect(
    422,
    Problem,
    create_account.sync_detailed(client=api, body=AccountCreate(name="Vestland", captured_value="a lot")),
)
assert problem.status == 422 and problem.code == "invalid", problem
assert [error.pointer for error in problem.errors or []] == ["/captured_value"], problem
stranger = AuthenticatedClient(base_url=URL, token="unknown")
assert expect(401, Problem, list_accounts.sync_detailed(client=stranger)).status == 401

# Create, list and delete a webhook. Only the first response contains its secret.
webhook = expect(
    201,
    NewWebhookSecret,
    create_webhook.sync_detailed(
        client=api,
        body=WebhookCreate(url="https://receiver.invalid/hooks", events=[SelectableEvent.ACCOUNT_STATUS_CHANGED]),
    ),
)
assert webhook.enabled and webhook.secret.startswith("whs_")
assert webhook.standard_secret.startswith("whsec_")
webhooks = expect(200, PageWebhook, list_webhooks.sync_detailed(client=api))
assert [listed.id for listed in webhooks.items] == [webhook.id]
assert webhooks.items[0].events == [SelectableEvent.ACCOUNT_STATUS_CHANGED]
assert delete_webhook.sync_detailed(webhook.id, client=api).status_code == 204
assert expect(200, PageWebhook, list_webhooks.sync_detailed(client=api)).items == []

# Delete an account: it is gone.
assert delete_account.sync_detailed(nordlys.id, client=api).status_code == 204
assert expect(404, Problem, get_account.sync_detailed(nordlys.id, client=api)).status == 404
