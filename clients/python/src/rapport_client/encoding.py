"""Bodies of requests: JSON, cut into batches that the service accepts, and compressed."""

import gzip
import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import TypeVar

Item = TypeVar("Item")

# The service accepts 1 MiB after decompression. This is what a batch leaves for the members around its items.
LARGEST_BATCH_BYTES = 1024 * 1024 - 4 * 1024
# Smaller bodies fit into one packet anyway.
_WORTH_COMPRESSING_BYTES = 1024


def encode(value: object) -> bytes:
    """Writes JSON. Amounts (`Decimal`) become strings, and times must have a time zone."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_convert).encode()


def batches(items: Iterable[tuple[Item, bytes]], most: int) -> Iterator[list[tuple[Item, bytes]]]:
    """Groups items with their JSON, in order. An item that is too large for any batch is alone in its own."""
    batch: list[tuple[Item, bytes]] = []
    size = 0
    for item, text in items:
        if batch and (len(batch) == most or size + len(text) > LARGEST_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((item, text))
        # One more for the comma.
        size += len(text) + 1
    if batch:
        yield batch


def compress(body: bytes) -> tuple[bytes, dict[str, str]]:
    """Returns what to send for this body, and the header that says how it is encoded."""
    if len(body) < _WORTH_COMPRESSING_BYTES:
        return body, {}
    return gzip.compress(body, mtime=0), {"Content-Encoding": "gzip"}


def _convert(value: object) -> object:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{value!r} can't be written as JSON")
