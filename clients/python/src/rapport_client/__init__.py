"""A client for Rapport.

`api` and `models` are generated from the service's OpenAPI document and cover every operation. On top of them:

- `Upserter` creates and changes accounts by the id in your own system, one by one or in batches.
- `Ingest` reports client activity; `IngestQueue` does it in the background.
- `Verifier` checks that a webhook delivery is genuine.
"""

from .client import AuthenticatedClient, Client
from .connection import Connection
from .exceptions import ErrorResponse, NoResponse, RapportError
from .ingest import Ingest, Rejected, Report
from .ingest_queue import IngestQueue, QueueClosed, QueueFull, Totals
from .retry import RetryPolicy
from .signatures import SignatureError, Verifier, WebhookEvent
from .upsert import Outcome, Upserter
from .version import __version__

__all__ = [
    "AuthenticatedClient",
    "Client",
    "Connection",
    "ErrorResponse",
    "Ingest",
    "IngestQueue",
    "NoResponse",
    "Outcome",
    "QueueClosed",
    "QueueFull",
    "RapportError",
    "Rejected",
    "Report",
    "RetryPolicy",
    "SignatureError",
    "Totals",
    "Upserter",
    "Verifier",
    "WebhookEvent",
    "__version__",
]
