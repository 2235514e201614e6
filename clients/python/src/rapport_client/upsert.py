"""Creates and changes accounts by the id that they have in your own system."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import httpx

from .connection import TIMEOUT_SECONDS, Connection
from .encoding import batches, encode
from .exceptions import ErrorResponse
from .models import Problem, UpsertBatchAccount, UpsertReply, UpsertRequest, UpsertResult
from .retry import RetryPolicy
from .types import Unset

# The contract's limit of a batch.
LARGEST_BATCH = 500

Record = Mapping[str, object] | UpsertRequest | UpsertBatchAccount
"""The members of an upsert: `imported_id`, and what else you want to set. `project` is added."""


@dataclass(frozen=True)
class Outcome:
    """What came of one record: either `reply` or `error`."""

    index: int
    """The record's position, from 0."""
    record: Record
    status: int
    """What a request for this record alone would have got: 201 if it created the account, else 200, or an error."""
    reply: UpsertReply | None
    error: Problem | None
    """Why the record was refused. Nothing of it was stored."""


class Upserter:
    """Upserts into one company. Several threads can use it.

    An upsert sets values, so making it again changes nothing more: requests that got no response are simply repeated.
    With `idempotency_keys` the service also repeats its first response, so that `created` and `changed` say what
    happened in the first attempt. That costs it some more work, and a company can use 100,000 keys a day.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        project: str,
        *,
        idempotency_keys: bool = False,
        retry: RetryPolicy | None = None,
        timeout: float = TIMEOUT_SECONDS,
        http: httpx.Client | None = None,
    ) -> None:
        self._connection = Connection(
            base_url, {"Authorization": f"Bearer {token}"}, retry=retry, timeout=timeout, http=http
        )
        self._project = project
        self._idempotency_keys = idempotency_keys

    def upsert(self, record: Record, *, idempotency_key: str | None = None) -> UpsertReply:
        """Creates or changes one account.

        A key of your own makes the call repeatable across restarts of your program, for 24 hours.
        """
        response = self._connection.post(
            "/api/accounts/upsert-by-imported-id/",
            encode({**_members(record), "project": self._project}),
            self._key(idempotency_key),
        )
        return UpsertReply.from_dict(response.json())

    def upsert_many(
        self,
        records: Iterable[Record],
        *,
        name_policy: Literal["create", "update"] | None = None,
        status_policy: Literal["set", "forward"] | None = None,
    ) -> Iterator[Outcome]:
        """Creates or changes any number of accounts, and yields an outcome for each, in order.

        Nothing is sent before you iterate. Records are read when they are needed, up to 500 at once, and sent in one
        request that stores all it accepts or nothing. If a request fails for good, this raises; everything that was
        yielded until then is stored, and you can start again from the beginning. The policies apply to records that
        have none of their own.
        """
        policies = {"name_policy": name_policy, "status_policy": status_policy}
        rest = encode({"project": self._project, **{key: value for key, value in policies.items() if value}})
        index = 0
        for batch in batches(_encoded(records), LARGEST_BATCH):
            for result in self._send(batch, rest):
                yield Outcome(
                    index + result.index,
                    batch[result.index][0],
                    result.status,
                    result.reply if isinstance(result.reply, UpsertReply) else None,
                    result.error if isinstance(result.error, Problem) else None,
                )
            index += len(batch)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, batch: list[tuple[Record, bytes]], rest: bytes) -> list[UpsertResult]:
        accounts = b",".join(text for _, text in batch)
        try:
            response = self._connection.post(
                "/api/accounts/upsert-batch/", b'{"accounts":[' + accounts + b"]," + rest[1:], self._key(None)
            )
        except ErrorResponse as error:
            # A record that is larger than a whole request may be. The others don't have to wait for it.
            if error.status == 413 and len(batch) == 1 and error.problem:
                return [UpsertResult(index=0, status=413, error=Problem.from_dict(error.problem))]
            raise
        results = response.json()["results"]
        return [UpsertResult.from_dict(result) for result in results]

    def _key(self, key: str | None) -> dict[str, str]:
        if key is None and self._idempotency_keys:
            key = str(uuid.uuid4())
        return {} if key is None else {"Idempotency-Key": key}


def _members(record: Record) -> dict[str, object]:
    if isinstance(record, UpsertRequest | UpsertBatchAccount):
        return record.to_dict()
    return {key: value for key, value in record.items() if not isinstance(value, Unset)}


def _encoded(records: Iterable[Record]) -> Iterator[tuple[Record, bytes]]:
    for index, record in enumerate(records):
        try:
            text = encode(_members(record))
        except (TypeError, ValueError) as error:
            raise ValueError(f"record {index}: {error}") from error
        yield record, text
