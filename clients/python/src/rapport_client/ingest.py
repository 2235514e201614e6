"""Reports client activity: batches, compressed, that are safe to send again."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import httpx

from .connection import TIMEOUT_SECONDS, Connection
from .encoding import batches, encode
from .exceptions import ErrorResponse
from .models import ActivityEvent, RejectedEvent
from .retry import RetryPolicy

# The contract's limit of a batch.
LARGEST_BATCH = 100

Event = Mapping[str, object] | ActivityEvent
"""An activity event: `kind`, the account (`imported_id` or `account_id`), and what else the kind needs."""


@dataclass(frozen=True)
class Rejected:
    """An event that breaks a rule. Sending it again would not help."""

    event: dict[str, Any]
    """The event as it was sent."""
    code: str
    field: str
    detail: str


@dataclass
class Report:
    """What came of events."""

    accepted: int = 0
    duplicates: int = 0
    """Events that were accepted before, under the same `event_id`."""
    unmatched: list[dict[str, Any]] = field(default_factory=list)
    """Events without an account, as they were sent. Create the account first; don't send them again in a loop."""
    rejected: list[Rejected] = field(default_factory=list)

    def add(self, other: "Report") -> None:
        self.accepted += other.accepted
        self.duplicates += other.duplicates
        self.unmatched += other.unmatched
        self.rejected += other.rejected


class Ingest:
    """Sends events now, and returns when they are stored. Several threads can use it.

    An event without an `event_id` gets a random one, so the repeats of a request don't count it twice. Set one of your
    own if you may send the same event in another call. An event without `occurred_at` gets the current time.
    """

    def __init__(
        self,
        base_url: str,
        ingest_key: str,
        *,
        retry: RetryPolicy | None = None,
        timeout: float = TIMEOUT_SECONDS,
        http: httpx.Client | None = None,
    ) -> None:
        self._connection = Connection(base_url, credential(ingest_key), retry=retry, timeout=timeout, http=http)

    def send(self, events: Iterable[Event]) -> Report:
        """Sends any number of events, in order, up to 100 in a request.

        If a request fails for good, this raises. The requests before it are done, so send all events again only if
        they have an `event_id` of your own.
        """
        report = Report()
        for batch in batches(_encoded(events), LARGEST_BATCH):
            report.add(send_batch(self._connection, [text for _, text in batch], [event for event, _ in batch]))
        return report

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def credential(ingest_key: str) -> dict[str, str]:
    """The header with the key."""
    return {"X-Service-Ingest-Key": ingest_key}


def complete(event: Event) -> dict[str, Any]:
    """Returns the event with an `event_id` and an `occurred_at`."""
    members = event.to_dict() if isinstance(event, ActivityEvent) else dict(event)
    if members.get("event_id") is None:
        members["event_id"] = str(uuid.uuid4())
    if members.get("occurred_at") is None:
        members["occurred_at"] = datetime.now(UTC)
    return members


def send_batch(connection: Connection, texts: list[bytes], events: list[dict[str, Any]]) -> Report:
    """Sends one batch: the events, and each as JSON."""
    try:
        reply = connection.post("/api/pulse/ingest/", b'{"events":[' + b",".join(texts) + b"]}").json()
    except ErrorResponse as error:
        # Every event is invalid. That is a result too, with the same members.
        if error.code != "all_rejected":
            raise
        reply = error.problem
    rejected = [RejectedEvent.from_dict(item) for item in reply["rejected"]]
    return Report(
        accepted=reply["accepted"],
        duplicates=reply["duplicates"],
        unmatched=[events[index] for index in reply.get("unmatched_indexes", [])],
        rejected=[Rejected(events[item.index], str(item.code), item.field, item.detail) for item in rejected],
    )


def _encoded(events: Iterable[Event]) -> Iterator[tuple[dict[str, Any], bytes]]:
    for index, event in enumerate(events):
        members = complete(event)
        try:
            text = encode(members)
        except (TypeError, ValueError) as error:
            raise ValueError(f"event {index}: {error}") from error
        yield members, text
